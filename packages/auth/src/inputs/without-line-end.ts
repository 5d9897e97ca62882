/** Removes one line break at the end of a string, LF or CR LF, as `echo` and editors add it. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}
