! Scalars, which an optimiser likes to keep in registers, and small arrays: what is stored before an asynchronous call is
! what it moves, what is loaded after wait is what it has moved.
program asynchronous_buffers
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use outcore
  implicit none
  type(oc_eaf) :: file
  type(oc_request) :: requests(2)
  real(real64), asynchronous :: out, in, several(4)
  real(real64) :: total
  integer :: i
  call file%open('asynchronous')
  total = 0
  do i = 1, 200
    out = i
    call file%write_async(out, 0_int64, requests(1))
    call requests(1)%wait()
    out = -1
    in = 0
    several = 0
    call file%read_async(in, 0_int64, requests(1))
    call file%read_async(several(2), 0_int64, requests(2))
    call wait_all(requests)
    total = total + in + several(2)
    in = -2
  end do
  call file%delete()
  if (total /= 200 * 201) error stop 'a value was moved before it was stored, or loaded before it was moved'
  if (several(1) /= 0 .or. out /= -1 .or. in /= -2) error stop 'a value was moved that is not of the request'
end program asynchronous_buffers
