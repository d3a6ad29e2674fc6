from .minari import load_minari as load_minari
from .minari import save_minari as save_minari
from .parquet import load_starts as load_starts
from .parquet import load_transitions as load_transitions
from .parquet import save_starts as save_starts
from .parquet import save_transitions as save_transitions
