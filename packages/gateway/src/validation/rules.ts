import { type DescExtension, type DescMessage, getOption, hasOption, type Registry } from "@bufbuild/protobuf";
import type { FieldRules, Rule } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { RuleSchemas } from "./protovalidate.ts";

/** The rules of a type, and of all types that its messages may contain. */
export interface Rules {
  readonly exist: boolean;
  /** The CEL expressions, each with the name of the type, field or extension that has it. */
  readonly expressions: ReadonlyMap<string, string>;
}

/** Finds the rules of a type. */
export function findRules(type: DescMessage, schemas: RuleSchemas): Rules {
  const expressions = new Map<string, string>();
  let exist = false;
  const types = new Set([type]);
  // The loop also visits the types that it adds.
  for (const reached of types) {
    const { typeName, fields, oneofs } = reached;
    if (hasOption(reached, schemas.message)) {
      exist = true;
      addExpressions(expressions, typeName, getOption(reached, schemas.message));
    }
    exist ||= oneofs.some((group) => hasOption(group, schemas.oneof));
    for (const field of fields) {
      if (field.message !== undefined) types.add(field.message);
      if (!hasOption(field, schemas.field)) continue;
      exist = true;
      addFieldExpressions(expressions, `${typeName}.${field.name}`, getOption(field, schemas.field));
    }
  }
  return { exist, expressions };
}

/** Returns the CEL expressions of predefined rules, each with the name of the extension that has it. */
export function predefinedExpressions(registry: Registry, schemas: RuleSchemas): ReadonlyMap<string, string> {
  const expressions = new Map<string, string>();
  for (const extension of registry) {
    if (extension.kind === "extension") addPredefined(expressions, extension, schemas);
  }
  return expressions;
}

function addPredefined(expressions: Map<string, string>, extension: DescExtension, schemas: RuleSchemas): void {
  if (!hasOption(extension, schemas.predefined)) return;
  for (const { expression } of getOption(extension, schemas.predefined).cel) {
    expressions.set(expression, extension.typeName);
  }
}

function addFieldExpressions(expressions: Map<string, string>, owner: string, rules: FieldRules): void {
  addExpressions(expressions, owner, rules);
  const { type } = rules;
  if (type.case === "repeated" && type.value.items) addFieldExpressions(expressions, owner, type.value.items);
  if (type.case !== "map") return;
  if (type.value.keys) addFieldExpressions(expressions, owner, type.value.keys);
  if (type.value.values) addFieldExpressions(expressions, owner, type.value.values);
}

function addExpressions(
  expressions: Map<string, string>,
  owner: string,
  { cel, celExpression }: { readonly cel: readonly Rule[]; readonly celExpression: readonly string[] },
): void {
  for (const expression of [...cel.map((rule) => rule.expression), ...celExpression]) {
    expressions.set(expression, owner);
  }
}
