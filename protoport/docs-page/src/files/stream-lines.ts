/** Yields the complete lines after each chunk of a stream. At the end, yields a last line without a line feed. */
export async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>> | null): AsyncGenerator<string[]> {
  // A reader is used because not every browser can iterate over a stream with `for await`.
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let unfinishedLine = "";
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    const lines = (unfinishedLine + read.value).split("\n");
    unfinishedLine = lines.pop() ?? "";
    yield lines;
  }
  if (unfinishedLine !== "") yield [unfinishedLine];
}

/** Returns whether a line of a stream is a message, not the end event or an error. */
export function isMessage(line: string, before: string): boolean {
  if (line.startsWith("data:")) return !before.startsWith("event:");
  return line.startsWith("{") && !/^\{"(?:@error"|error":\{"code":)/.test(line);
}
