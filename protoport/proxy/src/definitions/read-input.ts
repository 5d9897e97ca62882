import { messageOf } from "@protoport/gateway/errors";
import { readRegularFile } from "@protoport/command-line";
import { InputError } from "./input-error.ts";

/** Reads a text file. @throws InputError if it is empty, larger than `maxBytes`, not a regular file, or unreadable */
export async function readInput(path: string, maxBytes: number): Promise<string> {
  const text = await readText(path, maxBytes);
  if (text === "") throw new InputError(`${path} is empty`);
  return text;
}

/** Reads a text file, which may be empty. @throws as {@link readInput} does */
export async function readText(path: string, maxBytes: number): Promise<string> {
  const bytes = await readRegularFile(path, maxBytes).catch((error: unknown) => {
    throw new InputError(`cannot read ${path}: ${messageOf(error)}`);
  });
  return new TextDecoder().decode(bytes);
}
