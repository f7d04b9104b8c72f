!> Begins and ends MPI as Outcore needs it: for several threads. It calls the C functions, so that the examples build with
!> any MPI and any size of INTEGER; your own program calls mpi_init_thread with MPI_THREAD_MULTIPLE.
module mpi_job
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: begin_job, end_job

  interface
    integer(c_int) function init_thread(count, arguments, required, provided) bind(c, name='MPI_Init_thread')
      import :: c_int, c_ptr
      type(c_ptr), value :: count, arguments
      integer(c_int), value :: required
      integer(c_int), intent(out) :: provided
    end function
    integer(c_int) function finalize() bind(c, name='MPI_Finalize')
      import :: c_int
    end function
  end interface

contains

  subroutine begin_job()
    integer(c_int), parameter :: thread_multiple = 3
    integer(c_int) :: provided
    if (init_thread(c_null_ptr, c_null_ptr, thread_multiple, provided) /= 0) error stop 'MPI does not begin'
    if (provided /= thread_multiple) error stop 'MPI is not for several threads'
  end subroutine

  subroutine end_job()
    if (finalize() /= 0) error stop 'MPI does not end'
  end subroutine
end module
