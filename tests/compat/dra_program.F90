! Disk resident arrays by their classic names from Fortran, with memory of the real Global Arrays. Built against
! the library of the original and against ours; what only ours does right is left out with -DORIGINAL. The
! argument is a directory.
module checks
  implicit none
  integer :: failures = 0, me = 0, processes = 1
  character(200) :: directory
contains

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print *, 'FAIL  process', me, ': ', what
    failures = failures + 1
  end subroutine

  character(250) function path_of(name)
    character(*), intent(in) :: name
    path_of = trim(directory)//'/'//name
  end function

  ! What element (i, j) of a matrix is.
  double precision function value_at(i, j)
    integer, intent(in) :: i, j
    value_at = 1000*i + j
  end function
end module

! What C prints, in a file.
module captured
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char, c_null_ptr, c_ptr
  use checks, only: me, path_of
  implicit none
  private
  public :: capture, end_capture, is_captured
  integer(c_int), parameter :: readable = int(o'644', c_int)
  integer(c_int) :: printed, kept, status
  interface
    integer(c_int) function creat(path, mode) bind(c)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: mode
    end function
    integer(c_int) function dup(file) bind(c)
      import :: c_int
      integer(c_int), value :: file
    end function
    integer(c_int) function dup2(file, other) bind(c)
      import :: c_int
      integer(c_int), value :: file, other
    end function
    integer(c_int) function close_file(file) bind(c, name='close')
      import :: c_int
      integer(c_int), value :: file
    end function
    integer(c_int) function fflush(stream) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: stream
    end function
  end interface
contains

  ! Of this process.
  character(250) function its_file()
    character(8) :: number
    write (number, '(i0)') me
    its_file = path_of('captured'//trim(number))
  end function

  ! 1: the standard output; 2: that of errors.
  subroutine capture(descriptor)
    integer(c_int), intent(in) :: descriptor
    integer(c_int) :: file
    flush (6)
    status = fflush(c_null_ptr)
    printed = descriptor
    kept = dup(descriptor)
    file = creat(trim(its_file())//c_null_char, readable)
    status = dup2(file, descriptor)
    status = close_file(file)
  end subroutine

  subroutine end_capture()
    status = fflush(c_null_ptr)
    status = dup2(kept, printed)
    status = close_file(kept)
  end subroutine

  logical function is_captured(words)
    character(*), intent(in) :: words
    character(1000) :: line
    integer :: unit, code
    is_captured = .false.
    open (newunit=unit, file=trim(its_file()), status='old', action='read')
    do
      read (unit, '(a)', iostat=code) line
      if (code /= 0) exit
      is_captured = is_captured .or. index(line, words) > 0
    end do
    close (unit)
  end function
end module

program dra_program
  use, intrinsic :: iso_fortran_env, only: int32
  use checks
  implicit none
#include "mafdecls.fh"
#include "global.fh"
#include "dra.fh"
  integer total(1)
  integer(int32) code
  external mpi_init, mpi_finalize
  call mpi_init(code)
  call ga_initialize()
  call expect(ma_init(MT_DBL, 1000000, 4000000), 'memory')
  me = ga_nodeid()
  processes = ga_nnodes()
  call get_command_argument(1, directory)
  call expect(dra_init(10, 1d9, 1d10, -1d0) == 0, 'init')
  call matrices()
  call cubes()
  call types()
  call configured()
#ifndef ORIGINAL
  call debugging()
  call errors()
#endif
  call expect(dra_terminate() == 0, 'terminate')
  total(1) = failures
  call ga_igop(1, total, 1, '+')
  if (me == 0) print '(i0, a)', total(1), ' failed'
  call ga_terminate()
  call mpi_finalize(code)
end program

! Two axes, whose bounds are given one by one.
subroutine matrices()
  use checks
  implicit none
#include "mafdecls.fh"
#include "global.fh"
#include "dra.fh"
  integer rows, columns
  parameter (rows=60, columns=44)
  integer a, b, d, request, type, dim1, dim2, i, j, status
  double precision column(rows), row(columns)
  character(80) name
  character(250) filename
  call expect(ga_create(MT_DBL, rows, columns, 'a', 0, 0, a), 'create a')
  call expect(ga_create(MT_DBL, rows, columns, 'b', 0, 0, b), 'create b')
  call ga_zero(b)
  do j = 1 + me, columns, processes
    do i = 1, rows
      column(i) = value_at(i, j)
    end do
    call ga_put(a, 1, rows, j, j, column, rows)
  end do
  call ga_sync()
  call expect(dra_create(MT_DBL, rows, columns, 'matrix', path_of('fortran'), DRA_RW, rows, 1, d) == 0, 'create')
  call expect(dra_write(a, d, request) == 0, 'write')
  call expect(dra_wait(request) == 0, 'wait')
  call expect(dra_close(d) == 0, 'close')
  call expect(dra_open(path_of('fortran'), DRA_RW, d) == 0, 'open')
  call expect(dra_inquire(d, type, dim1, dim2, name, filename) == 0, 'inquire')
  call expect(type == MT_DBL .and. dim1 == rows .and. dim2 == columns, 'type and dimensions')
  call expect(filename == path_of('fortran'), 'name of the file')
#ifndef ORIGINAL
  call expect(name == 'matrix', 'name')
#endif
  call expect(dra_read(b, d, request) == 0, 'read')
  call expect(dra_wait(request) == 0, 'wait for what is read')
  do j = 1 + me, columns, processes
    call ga_get(b, 1, rows, j, j, column, rows)
    do i = 1, rows
      call expect(column(i) == value_at(i, j), 'element')
    end do
  end do
  call ga_sync()

  ! Rows 11 to 20 of the array become rows 1 to 10 of the disk array, and columns 5 to 14 move by one.
  call expect(dra_write_section(.false., a, 11, 20, 5, 14, d, 1, 10, 6, 15, request) == 0, 'write a section')
  call expect(dra_wait(request) == 0, 'wait for a section')
  call ga_zero(b)
  call expect(dra_read_section(.false., b, 21, 30, 1, 10, d, 1, 10, 6, 15, request) == 0, 'read a section')
  status = 7
  call expect(dra_probe(request, status) == 0, 'probe')
  call expect(dra_wait(request) == 0, 'wait for its read')
  call ga_get(b, 27, 27, 1, columns, row, 1)
  do j = 1, columns
    if (j <= 10) then
      call expect(row(j) == value_at(17, j + 4), 'of a section')
    else
      call expect(row(j) == 0, 'beside a section')
    end if
  end do
  call ga_sync()
#ifndef ORIGINAL
  ! Transposed, both ways.
  call expect(dra_write_section(.true., a, 1, 30, 1, 20, d, 11, 30, 5, 34, request) == 0, 'write transposed')
  call expect(dra_wait(request) == 0, 'wait for transposed')
  call expect(dra_read_section(.false., b, 1, 20, 1, 30, d, 11, 30, 5, 34, request) == 0, 'read what is transposed')
  call expect(dra_wait(request) == 0, 'wait for its read')
  do j = 1 + me, 30, processes
    call ga_get(b, 1, 20, j, j, column, rows)
    do i = 1, 20
      call expect(column(i) == value_at(j, i), 'transposed')
    end do
  end do
  call ga_sync()
  call expect(dra_read_section(.true., b, 1, 30, 1, 20, d, 11, 30, 5, 34, request) == 0, 'read transposed')
  call expect(dra_wait(request) == 0, 'wait for turned')
  do j = 1 + me, 20, processes
    call ga_get(b, 1, 30, j, j, column, rows)
    do i = 1, 30
      call expect(column(i) == value_at(i, j), 'turned twice')
    end do
  end do
  call ga_sync()
  do while (status /= 0)
    call expect(dra_probe(request, status) == 0, 'probe at last')
  end do
#endif
  call dra_flick()
  call expect(dra_delete(d) == 0, 'delete')
  call expect(ga_destroy(a), 'destroy a')
  call expect(ga_destroy(b), 'destroy b')
end subroutine

! Three axes, of integers.
subroutine cubes()
  use checks
  implicit none
#include "mafdecls.fh"
#include "global.fh"
#include "dra.fh"
  integer a, b, d, request, type, axes, i, k
  integer dims(3), found_dims(7), none(3), lo(3), hi(3), ld(2)
  integer values(6, 5, 4), found(6, 5, 4)
  character(80) name
  character(250) filename
  dims = [6, 5, 4]
  none = -1
  lo = 1
  ld = dims(1:2)
  values = reshape([(i, i = 1, 120)], [6, 5, 4])
  call expect(nga_create(MT_INT, 3, dims, 'a', none, a), 'create')
  call expect(nga_create(MT_INT, 3, dims, 'b', none, b), 'create')
  call ga_zero(b)
  if (me == 0) call nga_put(a, lo, dims, values, ld)
  call ga_sync()
  call expect(ndra_create(MT_INT, 3, dims, 'cube', path_of('cube'), DRA_RW, none, d) == 0, 'create a cube')
  call expect(ndra_inquire(d, type, axes, found_dims, name, filename) == 0, 'inquire')
  call expect(type == MT_INT .and. axes == 3 .and. all(found_dims(1:3) == dims), 'type and dimensions of a cube')
  call expect(name == 'cube' .and. filename == path_of('cube'), 'names of a cube')
  call expect(ndra_write(a, d, request) == 0, 'write a cube')
  call expect(dra_wait(request) == 0, 'wait for a cube')
  call expect(ndra_read(b, d, request) == 0, 'read a cube')
  call expect(dra_wait(request) == 0, 'wait for its read')
  call nga_get(b, lo, dims, found, ld)
  call expect(all(found == values), 'elements of a cube')
  call ga_sync()
  lo = [2, 1, 3]
  hi = [4, 5, 4]
  call ga_zero(b)
  call expect(ndra_read_section(.false., b, lo, hi, d, lo, hi, request) == 0, 'read a box')
  call expect(dra_wait(request) == 0, 'wait for a box')
  lo = 1
  call nga_get(b, lo, dims, found, ld)
  call expect(all(found(2:4, :, 3:4) == values(2:4, :, 3:4)), 'elements of a box')
  call expect(count(found /= 0) == 30, 'zeros beside a box')
  call ga_sync()
  lo = [2, 1, 3]
  call expect(ndra_write_section(.false., b, lo, hi, d, lo, hi, request) == 0, 'write a box')
  call expect(dra_wait(request) == 0, 'wait for its write')
#ifndef ORIGINAL
  ! Transposed: (i, j, k) of the disk is (k, j, i) of memory.
  lo = [1, 1, 1]
  hi = [4, 5, 6]
  k = b
  call expect(nga_create(MT_INT, 3, hi, 'turned', none, b), 'create turned')
  call expect(ndra_read_section(.true., b, lo, hi, d, lo, dims, request) == 0, 'read turned')
  call expect(dra_wait(request) == 0, 'wait for turned')
  do i = 1 + me, 6, processes
    lo = [1, 1, i]
    hi(3) = i
    call nga_get(b, lo, hi, found, hi)
    call expect(all(reshape(found, [20]) == reshape(transpose(values(i, :, :)), [20])), 'turned')
  end do
  call ga_sync()
  call expect(ga_destroy(b), 'destroy turned')
  b = k
#endif
  call expect(dra_delete(d) == 0, 'delete a cube')
  call expect(ga_destroy(a), 'destroy a')
  call expect(ga_destroy(b), 'destroy b')
end subroutine

! Each type; its elements are patterns of bytes to this program.
subroutine types()
  use checks
  implicit none
#include "mafdecls.fh"
#include "global.fh"
#include "dra.fh"
  integer, parameter :: all(5) = [MT_INT, MT_REAL, MT_DBL, MT_SCPL, MT_DCPL], sizes(5) = [8, 4, 8, 8, 16]
  integer a, b, d, request, type, axes, k, i, dims(2), found_dims(7), none(2), lo(2)
  integer, allocatable :: values(:), found(:)
  character(80) name
  character(250) filename
  dims = [6, 10]
  none = -1
  lo = 1
  do k = 1, 5
    values = [(i*1001, i=1, 60*sizes(k)/8)]
    allocate (found(size(values)), source=0)
    call expect(nga_create(all(k), 2, dims, 'a', none, a), 'create of a type')
    call expect(nga_create(all(k), 2, dims, 'b', none, b), 'create of a type')
    call ga_zero(b)
    if (me == 0) call nga_put(a, lo, dims, values, dims)
    call ga_sync()
    call expect(ndra_create(all(k), 2, dims, 'type', path_of('type'), DRA_RW, none, d) == 0, 'create of a type')
    call expect(ndra_inquire(d, type, axes, found_dims, name, filename) == 0, 'inquire')
    call expect(type == all(k) .and. axes == 2, 'type of an array')
    call expect(ndra_write(a, d, request) == 0, 'write a type')
    call expect(dra_wait(request) == 0, 'wait for a type')
    call expect(ndra_read(b, d, request) == 0, 'read a type')
    call expect(dra_wait(request) == 0, 'wait for its read')
    call nga_get(b, lo, dims, found, dims)
    call expect(count(found /= values) == 0, 'elements of a type')
    call ga_sync()
    deallocate (found)
    call expect(dra_delete(d) == 0, 'delete')
    call expect(ga_destroy(a), 'destroy a')
    call expect(ga_destroy(b), 'destroy b')
  end do
end subroutine

! With numbers of files and of processes that do I/O, of one array and of those that follow.
subroutine configured()
  use, intrinsic :: iso_c_binding, only: c_int
  use captured
  use checks
  implicit none
#include "mafdecls.fh"
#include "global.fh"
#include "dra.fh"
  integer a, b, d, request, type, axes, i, dims(2), found_dims(7), none(2), lo(2), values(12, 9), found(12, 9)
  character(80) name
  character(250) filename
  dims = [12, 9]
  none = -1
  lo = 1
  values = reshape([(i, i = 1, 108)], [12, 9])
  call expect(nga_create(MT_INT, 2, dims, 'a', none, a), 'create')
  call expect(nga_create(MT_INT, 2, dims, 'b', none, b), 'create')
  call ga_zero(b)
  if (me == 0) call nga_put(a, lo, dims, values, dims)
  call ga_sync()
  call expect(ndra_create_config(MT_INT, 2, dims, 'one', path_of('configured'), DRA_RW, none, 1, 1, d) == 0, &
              'create with numbers')
  call expect(ndra_inquire(d, type, axes, found_dims, name, filename) == 0, 'inquire')
  call expect(type == MT_INT .and. axes == 2 .and. all(found_dims(1:2) == dims), 'type and dimensions')
  call expect(name == 'one' .and. filename == path_of('configured'), 'names')
  call expect(ndra_write(a, d, request) == 0, 'write')
  call expect(dra_wait(request) == 0, 'wait for its write')
  call expect(ndra_read(b, d, request) == 0, 'read')
  call expect(dra_wait(request) == 0, 'wait for its read')
  call nga_get(b, lo, dims, found, dims)
  call expect(all(found == values), 'elements of a configured array')
  call ga_sync()
#ifndef ORIGINAL
  call capture(1_c_int)
  call dra_print_internals(d)
  call end_capture()
  call expect(is_captured('"one" in '//trim(path_of('configured'))) .eqv. me == 0, 'names that are printed')
  call expect(is_captured('dimensions: 12 9') .eqv. me == 0, 'dimensions that are printed')
#endif
  call expect(dra_delete(d) == 0, 'delete')
#ifndef ORIGINAL
  call dra_set_default_config(3, 2)
  call expect(ndra_create(MT_INT, 2, dims, 'two', path_of('configured'), DRA_RW, none, d) == 0, &
              'create as configured')
  call expect(ndra_write(a, d, request) == 0, 'write')
  call expect(dra_wait(request) == 0, 'wait for its write')
  call ga_zero(b)
  call expect(ndra_read(b, d, request) == 0, 'read')
  call expect(dra_wait(request) == 0, 'wait for its read')
  call nga_get(b, lo, dims, found, dims)
  call expect(all(found == values), 'elements as configured')
  call ga_sync()
  call expect(dra_delete(d) == 0, 'delete')
#endif
  call expect(ga_destroy(a), 'destroy a')
  call expect(ga_destroy(b), 'destroy b')
end subroutine

#ifndef ORIGINAL
! Errors are printed where that is asked for, and not else.
subroutine debugging()
  use, intrinsic :: iso_c_binding, only: c_int
  use captured
  use checks
  implicit none
#include "mafdecls.fh"
#include "dra.fh"
  integer d
  call expect(dra_set_debug(.true.) == 0, 'print errors')
  call capture(2_c_int)
  call expect(dra_open(path_of('nothing'), DRA_RW, d) /= 0, 'no array to open')
  call end_capture()
  call expect(is_captured(trim(path_of('nothing'))), 'an error that is printed')
  call expect(dra_set_debug(.false.) == 0, 'print no errors')
  call capture(2_c_int)
  call expect(dra_open(path_of('nothing'), DRA_RW, d) /= 0, 'no array to open')
  call end_capture()
  call expect(.not. is_captured(''), 'an error that is not printed')
end subroutine

! Codes at all processes, whichever of them gave what is wrong.
subroutine errors()
  use checks
  implicit none
#include "mafdecls.fh"
#include "global.fh"
#include "dra.fh"
  integer a, d, other, request, number
  call expect(ga_create(MT_DBL, 10, 10, 'a', 0, 0, a), 'create')
  call expect(dra_create(MT_DBL, 10, 10, 'e', path_of('no/such/directory'), DRA_RW, -1, -1, d) /= 0, 'no directory')
  number = DRA_RW
  if (me == processes - 1) number = 4711
  call expect(dra_create(MT_DBL, 10, 10, 'e', path_of('e'), number, -1, -1, d) /= 0, 'no mode')
  call expect(dra_create(MT_DBL, 10, 10, 'e', path_of('e'), DRA_RW, -1, -1, d) == 0, 'create an array')
  call expect(dra_open(path_of('e'), number, other) /= 0, 'no mode to open')
  number = d
  if (me == processes - 1) number = 4711
  call expect(dra_close(number) /= 0, 'no array to close')
  call expect(dra_delete(number) /= 0, 'no array to delete')
  call expect(dra_write(a, number, request) /= 0, 'no array')
  call expect(request == DRA_REQ_INVALID, 'no request')
  call expect(dra_write_section(.false., a, 1, 10, 1, 11, d, 1, 10, 1, 10, request) /= 0, 'a section outside')
  call expect(dra_write(a, d, request) == 0, 'write')
  number = request
  if (me == processes - 1) number = 4711
  call expect(dra_wait(number) /= 0, 'no request to wait for')
  call ga_sync()
  call expect(dra_delete(d) == 0, 'delete')
  call expect(ga_destroy(a), 'destroy')
end subroutine
#endif
