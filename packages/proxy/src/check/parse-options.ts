import { parseArgs, type ParseArgsConfig } from "node:util";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { InputProblem } from "./read-services.ts";

/** Reads the words of a command by its options. @throws InputProblem with the usage for others */
export function parseOptions<const Options extends NonNullable<ParseArgsConfig["options"]>>(
  words: readonly string[],
  options: Options,
  usage: string,
): ReturnType<typeof parseArgs<{ args: string[]; options: Options; allowPositionals: true; strict: true }>> {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new InputProblem(`${messageOf(error)}\n\n${usage}`);
  }
}
