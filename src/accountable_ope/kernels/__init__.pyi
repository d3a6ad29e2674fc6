from .kernel import FiniteRank as FiniteRank
from .kernel import Gaussian as Gaussian
from .kernel import Kernel as Kernel
from .kernel import Laplace as Laplace
from .kernel import Product as Product
from .kernel import Tabular as Tabular
from .kernel import block as block
from .random_features import RandomFeatureKernel as RandomFeatureKernel
