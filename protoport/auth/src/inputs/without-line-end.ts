/** Removes the line break, LF or CR LF, with which `echo` and editors end a file. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}
