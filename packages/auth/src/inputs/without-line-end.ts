/** Removes the line break, LF or CR LF, that `echo` and editors add at the end of a file. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}
