import { writeFile } from "node:fs/promises";
import { type CommandOf, type CommandOutput, textOf, UsageError } from "@protoport/command-line";
import { messageOf } from "@protoport/gateway/errors";
import { readDefinition } from "../definition.ts";
import { InputError } from "../input-error.ts";
import { visibilityOf } from "../visibility-flag.ts";
import { documentFlags } from "./document-flags.ts";
import { documentOfFlags, formatOf } from "./document-of-flags.ts";

/** Writes a descriptor set's OpenAPI document. */
export const openApiCommand: CommandOf<CommandOutput> = {
  name: "openapi",
  summary: "write the OpenAPI document of a definition, without an upstream",
  operands: [{ name: "SET", about: "a binary descriptor set, as for check; with source info, it has the comments" }],
  flags: {
    out: { value: "FILE", about: "writes the document to this file; default standard output" },
    ...documentFlags,
  },
  notes: ["Exit code: 0 if the document is written, 1 if the HTTP rules are not valid, 2 for an argument or a file."],
  run: async (flags, [file = ""], { out, err }) => {
    const path = textOf(flags["out"]);
    try {
      const format = formatOf(flags, path);
      const definition = await readDefinition(file, visibilityOf(flags));
      definition.warnings.forEach((problem) => err(problem));
      const bytes = await documentOfFlags(definition, flags, format, err);
      if (path === undefined) out(new TextDecoder().decode(bytes).replace(/\n$/, ""));
      else await write(path, bytes);
      return 0;
    } catch (error) {
      if (error instanceof UsageError) throw error;
      err(error instanceof InputError ? error.message : `cannot describe the definition: ${messageOf(error)}`);
      return error instanceof InputError ? 2 : 1;
    }
  },
};

async function write(path: string, bytes: Uint8Array): Promise<void> {
  try {
    await writeFile(path, bytes);
  } catch (error) {
    throw new InputError(`cannot write ${path}: ${messageOf(error)}`);
  }
}
