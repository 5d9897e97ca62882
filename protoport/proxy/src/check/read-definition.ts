import { InputError } from "./input-error.ts";

/** Maximum definition size in bytes. The descriptors for all Google APIs together take 30 MB. */
export const definitionMaxBytes: number = 200 * 1024 * 1024;

/** Reads a definition. `name` is for messages. @throws InputError above {@link definitionMaxBytes} bytes */
export async function readDefinition(input: AsyncIterable<Uint8Array>, name: string): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of input) {
    pieces.push(piece);
    length += piece.length;
    if (length > definitionMaxBytes) throw new InputError(`${name} is larger than ${definitionMaxBytes} bytes`);
  }
  return Buffer.concat(pieces, length);
}
