import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, MessageOptionsSchema } from "@bufbuild/protobuf/wkt";
import type { Protovalidate } from "./protovalidate.ts";

/** Returns the compile errors of CEL expressions. Expressions are compiled by validating empty messages. */
export function compileProblems(
  { createValidator, message: messageRules, MessageRulesSchema }: Protovalidate,
  ownerOf: ReadonlyMap<string, string>,
): string[] {
  const expressions = [...ownerOf.keys()];
  const file = create(FileDescriptorProtoSchema, {
    name: "probe.proto",
    syntax: "proto3",
    messageType: expressions.map((expression, index) => {
      const options = create(MessageOptionsSchema);
      setExtension(options, messageRules, create(MessageRulesSchema, { celExpression: [expression] }));
      return { name: `Probe${String(index)}`, options };
    }),
  });
  const registry = createFileRegistry(file, () => undefined);
  const validator = createValidator();
  return expressions.flatMap((expression, index) => {
    const probe = registry.getMessage(`Probe${String(index)}`);
    if (probe === undefined) return [];
    const { kind, error } = validator.validate(probe, create(probe));
    // A failed evaluation is not a problem, because the empty message has no fields.
    if (kind !== "error" || error.name !== "CompilationError") return [];
    return [`${ownerOf.get(expression)}: ${error.message}`];
  });
}
