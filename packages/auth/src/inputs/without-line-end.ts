/** Returns a text without the one line end that `echo` and editors leave: LF or CR LF. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}
