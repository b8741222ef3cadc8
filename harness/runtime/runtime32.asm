; C functions that 32-bit executables import, for routines to call: flat code that may stand anywhere, and a table of what
; is in it. The heap follows at the next 4 KiB boundary after the code: its first word is how much of it is taken.
;
; Every function gives the one correctly rounded or exact result there is, whatever the caller's precision control.
bits 32
%include "runtime_table.inc"

RUNTIME_BEGIN

RUNTIME memcpy
RUNTIME memmove
  push esi
  push edi
  mov edi, [esp + 12]
  mov esi, [esp + 16]
  mov ecx, [esp + 20]
  mov eax, edi
  sub eax, esi
  cmp eax, ecx
  jb .backwards                 ; the destination lies within the source: from its end
  rep movsb
  jmp .done
.backwards:
  lea esi, [esi + ecx - 1]
  lea edi, [edi + ecx - 1]
  std
  rep movsb
  cld
.done:
  mov eax, [esp + 12]
  pop edi
  pop esi
  ret

RUNTIME memset
  push edi
  mov edi, [esp + 8]
  mov al, [esp + 12]
  mov ecx, [esp + 16]
  rep stosb
  mov eax, [esp + 8]
  pop edi
  ret

RUNTIME memcmp
  push esi
  push edi
  mov esi, [esp + 12]
  mov edi, [esp + 16]
  mov ecx, [esp + 20]
  xor eax, eax
  cmp ecx, ecx                  ; equal if there is nothing to compare
  repe cmpsb
  je .done
  sbb eax, eax
  or eax, 1
.done:
  pop edi
  pop esi
  ret

RUNTIME sqrt
  sqrtsd xmm0, [esp + 4]
  sub esp, 8
  movsd [esp], xmm0
  fld qword [esp]
  add esp, 8
  ret

RUNTIME sqrtf
  sqrtss xmm0, [esp + 4]
  sub esp, 4
  movss [esp], xmm0
  fld dword [esp]
  add esp, 4
  ret

; Of the double nearest to st0.
RUNTIME _CIsqrt
  sub esp, 8
  fstp qword [esp]
  sqrtsd xmm0, [esp]
  movsd [esp], xmm0
  fld qword [esp]
  add esp, 8
  ret

RUNTIME fabs
  fld qword [esp + 4]
  fabs
  ret

RUNTIME floor
  mov ah, 0x04                  ; rounding control: down
  jmp round

RUNTIME ceil
  mov ah, 0x08                  ; up
  jmp round

round:
  fld qword [esp + 4]
  sub esp, 4
  fnstcw [esp]
  mov cx, [esp]
  and ch, 0xF3
  or ch, ah
  mov [esp + 2], cx
  fldcw [esp + 2]
  frndint
  fldcw [esp]
  add esp, 4
  ret

; st0 without its fraction as a 64-bit integer in edx:eax.
RUNTIME _ftol
RUNTIME _ftol2
RUNTIME _ftol2_sse
  sub esp, 12
  fnstcw [esp + 8]
  mov ax, [esp + 8]
  or ah, 0x0C
  mov [esp + 10], ax
  fldcw [esp + 10]
  fistp qword [esp]
  fldcw [esp + 8]
  mov eax, [esp]
  mov edx, [esp + 4]
  add esp, 12
  ret

; Blocks of a multiple of 16 bytes, each behind 16 bytes that hold its size. Null when the heap is used up.
RUNTIME malloc
  call heap
  mov eax, [esp + 4]
  cmp eax, runtime_heap_size
  ja .none
  add eax, 31
  and eax, -16
  mov edx, [ecx]
  add edx, eax
  cmp edx, runtime_heap_size - 16
  ja .none
  xchg edx, [ecx]
  lea edx, [ecx + edx + 16]
  mov [edx], eax
  lea eax, [edx + 16]
  ret
.none:
  xor eax, eax
  ret

; Gives back a block that is the last one there is; others stay taken.
RUNTIME free
  mov edx, [esp + 4]
  test edx, edx
  jz .done
  call heap
  sub edx, 16
  mov eax, [edx]
  add eax, edx
  sub eax, ecx
  sub eax, 16
  cmp eax, [ecx]
  jne .done
  mov eax, [edx]
  sub [ecx], eax
.done:
  ret

heap:
  call .here
.here:
  pop ecx
  add ecx, runtime_end - .here
  ret

RUNTIME_END
