!> Reads the checkpoint that exchange.py saved, and saves one for it: the product of density and core Hamiltonian, and the
!> energy that is its trace.
program exchange
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use outcore
  implicit none
  type(oc_world) :: world
  type(oc_checkpoint) :: found
  type(oc_checkpoint_saving) :: saving
  real(real64), allocatable :: density(:, :), core(:, :), together(:, :)
  real(real64) :: energy(1)
  integer(int64), allocatable :: extents(:)
  integer :: i, type
  call world%open()
  call found%open(world, 'python.checkpoint')
  call found%inquire('density', type, extents)
  if (type /= oc_float64) error stop 'exchange: the density is of another type'
  allocate (density(extents(1), extents(2)), core(extents(1), extents(2)))
  call found%read('density', density)
  call found%read('core', core)
  call found%close()
  together = matmul(density, core)
  energy = sum([(together(i, i), i = 1, size(together, 1))])
  call saving%begin(world, 'fortran.checkpoint')
  call saving%add('product', together)
  call saving%add('energy', energy)
  call saving%commit() ! until here the added arrays must not change
  print '(a, i0, a)', 'exchange: ', size(together, 1), ' functions, saved'
  call world%close()
end program
