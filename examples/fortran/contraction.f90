!> Integrals (ia|jb) from three-index integrals on disk, and their MP2 energy, by two contractions.
program contraction
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use outcore
  use mpi_job
  implicit none
  integer, parameter :: fitting = 60, virtual = 12, occupied = 5
  type(oc_world) :: world
  type(oc_dra) :: three, integrals
  type(oc_ga) :: amplitudes
  type(oc_einsum_counts) :: counts
  real(real64), allocatable :: matrix(:, :)
  real(real64), allocatable, target :: b(:, :, :), g(:, :, :, :), t(:, :, :, :)
  real(real64), target :: energy
  real(real64) :: expected
  integer :: i, j, a, c
  character(:), allocatable :: plan
  integer(int64), parameter :: memory = 200000

  call begin_job()
  call world%open(memory_bytes=64_int64 * 1024**2)
  allocate(b(fitting, virtual, occupied), g(virtual, occupied, virtual, occupied), t(virtual, occupied, virtual, occupied))
  b = reshape([(real(mod(7 * i, 23) - 11, real64) / 16, i = 1, size(b))], shape(b))
  call three%create(world, oc_float64, shape(b))
  call integrals%create(world, oc_float64, shape(g))
  call amplitudes%create(world, oc_float64, shape(g))
  if (world%rank() == 0) call three%put(b)
  call world%barrier()

  plan = einsum_plan(world, 'Qai,Qbj->aibj', [operand(three), operand(three)], operand(integrals), memory_bytes=memory)
  call einsum(world, 'Qai,Qbj->aibj', [operand(three), operand(three)], operand(integrals), memory_bytes=memory, &
    plan=plan, counts=counts)
  call integrals%get(g)
  forall (a = 1:virtual, i = 1:occupied, c = 1:virtual, j = 1:occupied) t(a, i, c, j) = &
    (2 * g(a, i, c, j) - g(c, i, a, j)) / real(i + j - a - c - 20, real64)
  if (world%rank() == 0) call amplitudes%put(t)
  call amplitudes%sync()
  call einsum(world, 'aibj,aibj->', [operand(integrals), operand(amplitudes)], operand(energy), scale=1.0_real64)

  expected = sum(g * t)
  matrix = reshape(b, [fitting, virtual * occupied])
  if (maxval(abs(reshape(g, shape(matmul(transpose(matrix), matrix))) - matmul(transpose(matrix), matrix))) > 1e-11) &
    error stop 'other integrals'
  if (abs(energy - expected) > 1e-10 * abs(expected)) error stop 'another energy'
  if (counts%flops /= 2.0 * fitting * (virtual * occupied)**2) error stop 'other operations'
  call three%close()
  call integrals%close()
  call amplitudes%close()
  if (world%rank() == 0) print '(a)', 'contraction: right'
  call world%close()
  call end_job()
end program
