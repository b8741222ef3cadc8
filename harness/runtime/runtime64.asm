; C functions that 64-bit executables import, as runtime32.asm has them for 32-bit ones; Microsoft's convention.
bits 64
default rel
%include "runtime_table.inc"

RUNTIME_BEGIN

RUNTIME memcpy
RUNTIME memmove
  mov r10, rsi
  mov r11, rdi
  mov rdi, rcx
  mov rsi, rdx
  mov rax, rcx
  sub rax, rdx
  mov rcx, r8
  cmp rax, rcx
  mov rax, rdi
  jb .backwards                 ; the destination lies within the source: from its end
  rep movsb
  jmp .done
.backwards:
  lea rsi, [rsi + rcx - 1]
  lea rdi, [rdi + rcx - 1]
  std
  rep movsb
  cld
.done:
  mov rsi, r10
  mov rdi, r11
  ret

RUNTIME memset
  mov r11, rdi
  mov r10, rcx
  mov rdi, rcx
  mov eax, edx
  mov rcx, r8
  rep stosb
  mov rax, r10
  mov rdi, r11
  ret

RUNTIME memcmp
  mov r10, rsi
  mov r11, rdi
  mov rsi, rcx
  mov rdi, rdx
  mov rcx, r8
  xor eax, eax
  cmp rcx, rcx                  ; equal if there is nothing to compare
  repe cmpsb
  je .done
  sbb eax, eax
  or eax, 1
.done:
  mov rsi, r10
  mov rdi, r11
  ret

RUNTIME sqrt
  sqrtsd xmm0, xmm0
  ret

RUNTIME sqrtf
  sqrtss xmm0, xmm0
  ret

RUNTIME fabs
  mov rax, 0x7FFFFFFFFFFFFFFF
  movq rcx, xmm0
  and rcx, rax
  movq xmm0, rcx
  ret

RUNTIME floor
  mov ah, 0x04                  ; rounding control: down
  jmp round

RUNTIME ceil
  mov ah, 0x08                  ; up
  jmp round

round:
  sub rsp, 16
  movsd [rsp], xmm0
  fld qword [rsp]
  fnstcw [rsp + 8]
  mov cx, [rsp + 8]
  and ch, 0xF3
  or ch, ah
  mov [rsp + 10], cx
  fldcw [rsp + 10]
  frndint
  fldcw [rsp + 8]
  fstp qword [rsp]
  movsd xmm0, [rsp]
  add rsp, 16
  ret

; Blocks of a multiple of 16 bytes, each behind 16 bytes that hold its size. Null when the heap is used up.
RUNTIME malloc
  lea r8, [runtime_end]
  mov rax, rcx
  cmp rax, runtime_heap_size
  ja .none
  add rax, 31
  and rax, -16
  mov rdx, [r8]
  add rdx, rax
  cmp rdx, runtime_heap_size - 16
  ja .none
  xchg rdx, [r8]
  lea rdx, [r8 + rdx + 16]
  mov [rdx], rax
  lea rax, [rdx + 16]
  ret
.none:
  xor eax, eax
  ret

; Gives back a block that is the last one there is; others stay taken.
RUNTIME free
  test rcx, rcx
  jz .done
  lea r8, [runtime_end]
  sub rcx, 16
  mov rax, [rcx]
  add rax, rcx
  sub rax, r8
  sub rax, 16
  cmp rax, [r8]
  jne .done
  mov rax, [rcx]
  sub [r8], rax
.done:
  ret

RUNTIME_END
