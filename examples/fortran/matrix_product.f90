!> The product of two matrices on disk, block by block: while one pair of blocks is multiplied, the next one is read.
program matrix_product
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use outcore
  use mpi_job
  implicit none
  integer(int64), parameter :: block = 70, blocks = 4, n = blocks * block
  type(oc_world) :: world
  type(oc_dra) :: a, b, c
  type(oc_counter) :: tasks
  type(oc_request) :: requests(2, 0:1)
  real(real64), asynchronous, allocatable :: left(:, :, :), right(:, :, :)
  real(real64), allocatable :: part(:, :)
  integer(int64) :: task, k

  call begin_job()
  call world%open(memory_bytes=256_int64 * 1024**2)
  call a%create(world, oc_float64, [n, n], typical=[block, block])
  call b%create(world, oc_float64, [n, n], typical=[block, block])
  call c%create(world, oc_float64, [n, n], typical=[block, block])
  call fill(a, 1)
  call fill(b, 2)
  call world%barrier()

  allocate(left(block, block, 0:1), right(block, block, 0:1), part(block, block))
  call tasks%create(world)
  do
    task = tasks%next()
    if (task >= blocks**2) exit
    part = 0
    call begin_reading(task, 0_int64)
    do k = 0, blocks - 1
      if (k + 1 < blocks) call begin_reading(task, k + 1)
      call wait_all(requests(:, mod(k, 2_int64)))
      part = part + matmul(left(:, :, mod(k, 2_int64)), right(:, :, mod(k, 2_int64)))
    end do
    call c%put(part, box=place(task / blocks, mod(task, blocks)))
  end do
  call c%sync()
  call world%barrier()
  call check()
  call tasks%close()
  call a%close()
  call b%close()
  call c%close()
  if (world%rank() == 0) print '(a)', 'matrix product: right'
  call world%close()
  call end_job()

contains

  type(oc_box) function place(i, j)
    integer(int64), intent(in) :: i, j
    place = section([i * block + 1, j * block + 1], [(i + 1) * block, (j + 1) * block])
  end function

  !> Begins to read block k of the row and the column of a task.
  subroutine begin_reading(its_task, its_k)
    integer(int64), intent(in) :: its_task, its_k
    integer(int64) :: side
    side = mod(its_k, 2_int64)
    call a%get_async(left(:, :, side), requests(1, side), box=place(its_task / blocks, its_k))
    call b%get_async(right(:, :, side), requests(2, side), box=place(its_k, mod(its_task, blocks)))
  end subroutine

  pure real(real64) function element(which, i, j)
    integer, intent(in) :: which
    integer(int64), intent(in) :: i, j
    element = real(mod(which * i + 3 * j, 7_int64) - 3, real64)
  end function

  !> Each process puts its own columns.
  subroutine fill(matrix, which)
    type(oc_dra), intent(inout) :: matrix
    integer, intent(in) :: which
    real(real64) :: column(n)
    integer(int64) :: i, j
    do j = 1 + world%rank(), n, world%size()
      column = [(element(which, i, j), i = 1, n)]
      call matrix%put(column, box=section([1_int64, j], [n, j]))
    end do
    call matrix%sync()
  end subroutine

  subroutine check()
    real(real64) :: found(n), wanted
    integer(int64) :: i, j, l
    do j = 1 + world%rank(), n, 37 * world%size()
      call c%get(found, box=section([1_int64, j], [n, j]))
      do i = 1, n
        wanted = sum([(element(1, i, l) * element(2, l, j), l = 1, n)])
        if (found(i) /= wanted) error stop 'matrix product: wrong'
      end do
    end do
    call world%barrier()
  end subroutine
end program
