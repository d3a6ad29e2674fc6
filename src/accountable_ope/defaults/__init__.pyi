from .choosing import choose_recipe as choose_recipe
from .recipe import Ball as Ball
from .recipe import ClassKind as ClassKind
from .recipe import Recipe as Recipe
