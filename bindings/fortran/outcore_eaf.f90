!> Exclusive access files for Fortran: the C interface (outcore/outcore.h), where units, errors and thread
!> rules are described. Compile this file with the program and link with -loutcore.
!>
!> Buffers may have any type and rank, and must be contiguous. The buffer of oc_eaf_read_async and oc_eaf_write_async
!> must stay where it is until oc_wait: declare it TARGET and ASYNCHRONOUS, and pass no expression.
module outcore_eaf
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: oc_eaf_options, oc_eaf_open, oc_eaf_write, oc_eaf_read, oc_eaf_write_async, oc_eaf_read_async, oc_wait, &
            oc_test, oc_wait_all, oc_wait_any, oc_eaf_flush, oc_eaf_close, oc_eaf_delete, oc_eaf_length, oc_eaf_truncate, &
            oc_eaf_preallocate, oc_eaf_eof, oc_errmsg

  integer(c_int), parameter, public :: oc_ok = 0, oc_end_of_file = -1
  integer(c_int), parameter, public :: oc_page_cache_auto = 0, oc_page_cache_buffered = 1, oc_page_cache_direct = 2

  type, bind(c) :: oc_eaf_options
    integer(c_size_t) :: size = 0
    type(c_ptr) :: scratch = c_null_ptr
    integer(c_int) :: keep = 0
    integer(c_int) :: page_cache = oc_page_cache_auto
    integer(c_int64_t) :: expected_bytes = 0
  end type

  interface
    integer(c_int) function open_c(name, options, file) bind(c, name='oc_eaf_open')
      import
      character(kind=c_char), intent(in) :: name(*)
      type(oc_eaf_options), intent(in) :: options
      integer(c_int), intent(out) :: file
    end function
    integer(c_int) function oc_eaf_write(file, offset, buffer, bytes) bind(c)
      import
      integer(c_int), value :: file
      integer(c_int64_t), value :: offset, bytes
      type(*), intent(in) :: buffer(*)
    end function
    integer(c_int) function oc_eaf_read(file, offset, buffer, bytes, moved) bind(c)
      import
      integer(c_int), value :: file
      integer(c_int64_t), value :: offset, bytes
      type(*) :: buffer(*)
      integer(c_int64_t), intent(out), optional :: moved
    end function
    integer(c_int) function oc_eaf_write_async(file, offset, buffer, bytes, request) bind(c)
      import
      integer(c_int), value :: file
      integer(c_int64_t), value :: offset, bytes
      type(*), asynchronous, intent(in) :: buffer(*)
      integer(c_int64_t), intent(out) :: request
    end function
    integer(c_int) function oc_eaf_read_async(file, offset, buffer, bytes, request) bind(c)
      import
      integer(c_int), value :: file
      integer(c_int64_t), value :: offset, bytes
      type(*), asynchronous :: buffer(*)
      integer(c_int64_t), intent(out) :: request
    end function
    integer(c_int) function oc_wait(request, moved) bind(c)
      import
      integer(c_int64_t), value :: request
      integer(c_int64_t), intent(out), optional :: moved
    end function
    integer(c_int) function oc_test(request, done) bind(c)
      import
      integer(c_int64_t), value :: request
      integer(c_int), intent(out) :: done
    end function
    integer(c_int) function oc_wait_all(count, requests) bind(c)
      import
      integer(c_int), value :: count
      integer(c_int64_t), intent(in) :: requests(*)
    end function
    integer(c_int) function wait_any_c(count, requests, position) bind(c, name='oc_wait_any')
      import
      integer(c_int), value :: count
      integer(c_int64_t), intent(in) :: requests(*)
      integer(c_int), intent(out) :: position
    end function
    integer(c_int) function oc_eaf_flush(file) bind(c)
      import
      integer(c_int), value :: file
    end function
    integer(c_int) function oc_eaf_close(file) bind(c)
      import
      integer(c_int), value :: file
    end function
    integer(c_int) function oc_eaf_delete(file) bind(c)
      import
      integer(c_int), value :: file
    end function
    integer(c_int) function oc_eaf_length(file, bytes) bind(c)
      import
      integer(c_int), value :: file
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function oc_eaf_truncate(file, bytes) bind(c)
      import
      integer(c_int), value :: file
      integer(c_int64_t), value :: bytes
    end function
    integer(c_int) function oc_eaf_preallocate(file, bytes) bind(c)
      import
      integer(c_int), value :: file
      integer(c_int64_t), value :: bytes
    end function
    integer(c_int) function oc_eaf_eof(file, offset, at_end) bind(c)
      import
      integer(c_int), value :: file
      integer(c_int64_t), value :: offset
      integer(c_int), intent(out) :: at_end
    end function
    type(c_ptr) function strerror_c(code) bind(c, name='oc_strerror')
      import
      integer(c_int), value :: code
    end function
    integer(c_size_t) function strlen_c(text) bind(c, name='strlen')
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  !> Opens a file; `scratch` empty or absent: the default directory.
  integer(c_int) function oc_eaf_open(name, file, scratch, keep, page_cache, expected_bytes) result(code)
    character(*), intent(in) :: name
    integer(c_int), intent(out) :: file
    character(*), intent(in), optional :: scratch
    logical, intent(in), optional :: keep
    integer(c_int), intent(in), optional :: page_cache
    integer(c_int64_t), intent(in), optional :: expected_bytes
    type(oc_eaf_options) :: options
    character(:, kind=c_char), allocatable, target :: directory
    file = 0
    options%size = c_sizeof(options)
    if (present(scratch)) then
      directory = trim(scratch) // c_null_char
      options%scratch = c_loc(directory)
    end if
    if (present(keep)) options%keep = merge(1_c_int, 0_c_int, keep)
    if (present(page_cache)) options%page_cache = page_cache
    if (present(expected_bytes)) options%expected_bytes = expected_bytes
    code = open_c(trim(name) // c_null_char, options, file)
  end function

  !> Waits until one of several requests is done, whose position in the list counts from 1. It must still be waited for.
  integer(c_int) function oc_wait_any(requests, position) result(code)
    integer(c_int64_t), intent(in) :: requests(:)
    integer(c_int), intent(out) :: position
    code = wait_any_c(size(requests, kind=c_int), requests, position)
    position = position + 1
  end function

  !> Text for a return code, as oc_strerror.
  function oc_errmsg(code) result(text)
    integer(c_int), intent(in) :: code
    character(:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    type(c_ptr) :: address
    integer :: i
    address = strerror_c(code)
    call c_f_pointer(address, characters, [strlen_c(address)])
    allocate(character(size(characters)) :: text)
    do i = 1, size(characters)
      text(i:i) = characters(i)
    end do
  end function

end module outcore_eaf
