import { writeFile } from "node:fs/promises";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponse_Feature as Feature,
  CodeGeneratorResponseSchema,
  Edition,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { type CommandOf, type CommandOutput, parseCommand, textOf, UsageError } from "@protoport/command-line";
import { messageOf } from "@protoport/gateway/errors";
import { parseDefinition, readBytes, readDefinition } from "../definition.ts";
import { InputError } from "../read-input.ts";
import { visibilityOf } from "../definition-flags.ts";
import { documentFlags, documentOfFlags, formatOf } from "./document-of-flags.ts";

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
      else await writeDocument(path, bytes);
      return 0;
    } catch (error) {
      if (error instanceof UsageError) throw error;
      err(error instanceof InputError ? error.message : `cannot describe the definition: ${messageOf(error)}`);
      return error instanceof InputError ? 2 : 1;
    }
  },
};

async function writeDocument(path: string, bytes: Uint8Array): Promise<void> {
  try {
    await writeFile(path, bytes);
  } catch (error) {
    throw new InputError(`cannot write ${path}: ${messageOf(error)}`);
  }
}

/** A plugin's streams. */
interface PluginStreams {
  readonly input: AsyncIterable<Uint8Array>;
  readonly write: (bytes: Uint8Array) => void;
}

/** Serves as a protoc and buf plugin. Reads a CodeGeneratorRequest and writes the document. */
export const pluginCommand: CommandOf<CommandOutput> = {
  name: "protoc-gen-openapi",
  summary: "run as a plugin of buf or protoc that writes the OpenAPI document",
  notes: ["The plugin reads standard input. Its options are the flags of openapi, without dashes: version=3.2"],
  run: async (_flags, _operands, { err }) => {
    await runPlugin({ input: process.stdin, write: (bytes) => void process.stdout.write(bytes) }, err);
    return 0;
  },
};

/** Responds to one CodeGeneratorRequest. The response contains errors. */
async function runPlugin({ input, write }: PluginStreams, err: (line: string) => void): Promise<void> {
  const response = await generate(input, err).catch(
    (error: unknown): MessageInitShape<typeof CodeGeneratorResponseSchema> => ({ error: messageOf(error) }),
  );
  const features = {
    supportedFeatures: BigInt(Feature.PROTO3_OPTIONAL | Feature.SUPPORTS_EDITIONS),
    minimumEdition: Edition.EDITION_PROTO2,
    maximumEdition: Edition.EDITION_2024,
  };
  write(toBinary(CodeGeneratorResponseSchema, create(CodeGeneratorResponseSchema, { ...features, ...response })));
}

async function generate(
  input: AsyncIterable<Uint8Array>,
  err: (line: string) => void,
): Promise<MessageInitShape<typeof CodeGeneratorResponseSchema>> {
  const request = fromBinary(CodeGeneratorRequestSchema, await readBytes(input, "the request"));
  const { flags } = parseCommand(
    { ...pluginCommand, flags: { out: { value: "FILE", about: "" }, ...documentFlags } },
    parameterWordsOf(request.parameter),
  );
  const path = textOf(flags["out"]);
  const format = formatOf(flags, path);
  const set = create(FileDescriptorSetSchema, { file: request.protoFile });
  const definition = parseDefinition("the request", toBinary(FileDescriptorSetSchema, set), visibilityOf(flags));
  definition.warnings.forEach((problem) => err(problem));
  const generated = new Set(request.fileToGenerate);
  const services = definition.services.filter(({ file }) => generated.has(file.proto.name));
  const bytes = await documentOfFlags({ ...definition, services }, flags, format, err);
  return { file: [{ name: path ?? `openapi.${format}`, content: new TextDecoder().decode(bytes) }] };
}

/** Returns the flags in a parameter such as "version=3.2,server=https://a.example". */
function parameterWordsOf(parameter: string): readonly string[] {
  return parameter
    .split(",")
    .filter((option) => option !== "")
    .map((option) => `--${option}`);
}
