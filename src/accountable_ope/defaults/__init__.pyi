from .choosing import choose_recipe as choose_recipe
from .files import load_recipe as load_recipe
from .files import save_recipe as save_recipe
from .judging import Judged as Judged
from .recipe import Ball as Ball
from .recipe import ClassKind as ClassKind
from .recipe import Recipe as Recipe
