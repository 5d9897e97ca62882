import { parseArgs, type ParseArgsConfig } from "node:util";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { InputError } from "./read-services.ts";

/** Parses the arguments of a command. @throws InputError for unknown options; its message includes the usage */
export function parseOptions<const Options extends NonNullable<ParseArgsConfig["options"]>>(
  args: readonly string[],
  options: Options,
  usage: string,
): ReturnType<typeof parseArgs<{ args: string[]; options: Options; allowPositionals: true; strict: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new InputError(`${messageOf(error)}\n\n${usage}`);
  }
}
