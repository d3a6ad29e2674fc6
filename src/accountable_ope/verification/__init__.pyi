from .files import load_record as load_record
from .files import save_record as save_record
from .record import Record as Record
from .verify import Verification as Verification
from .verify import verify_record as verify_record
