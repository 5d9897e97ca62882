import { type DescExtension, type DescMessage, getOption, hasOption, type Registry } from "@bufbuild/protobuf";
import type { FieldRules, Rule } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** The rules for message types, and for all types that their messages may contain. */
export interface Rules {
  /** Number of messages, fields and oneofs with rules. */
  readonly owners: number;
  /** Number of characters in all regular expressions. */
  readonly patternCharacters: number;
  /** The types with rules. A type comes before the types that only its messages contain. */
  readonly typesWithRules: ReadonlySet<DescMessage>;
  /** The CEL expressions, each with the name of the type, field or extension that declares the expression. */
  readonly expressions: ReadonlyMap<string, string>;
}

/** Finds the rules for message types. */
export function findRules(inputs: Iterable<DescMessage>, schemas: RuleSchemas): Rules {
  const expressions = new Map<string, string>();
  const typesWithRules = new Set<DescMessage>();
  let owners = 0;
  let patternCharacters = 0;
  const types = new Set(inputs);
  // The loop also visits the types that it adds.
  for (const reached of types) {
    const { typeName, fields, oneofs } = reached;
    const ownersBefore = owners;
    if (hasOption(reached, schemas.message)) {
      owners += 1;
      addExpressions(expressions, typeName, getOption(reached, schemas.message));
    }
    owners += oneofs.filter((group) => hasOption(group, schemas.oneof)).length;
    for (const field of fields) {
      if (field.message !== undefined) types.add(field.message);
      if (!hasOption(field, schemas.field)) continue;
      owners += 1;
      for (const rules of nestedRules(getOption(field, schemas.field))) {
        addExpressions(expressions, `${typeName}.${field.name}`, rules);
        patternCharacters += patternOf(rules).length;
      }
    }
    if (owners > ownersBefore) typesWithRules.add(reached);
  }
  return { owners, patternCharacters, typesWithRules, expressions };
}

/** Returns the CEL expressions in predefined rules, each with the extension's name. */
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

function patternOf({ type }: FieldRules): string {
  return type.case === "string" || type.case === "bytes" ? type.value.pattern : "";
}

function nestedRules(rules: FieldRules): readonly FieldRules[] {
  const { type } = rules;
  if (type.case === "repeated") return [rules, ...(type.value.items ? nestedRules(type.value.items) : [])];
  if (type.case !== "map") return [rules];
  const { keys, values } = type.value;
  return [rules, ...[keys, values].flatMap((nested) => (nested ? nestedRules(nested) : []))];
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

/** The protovalidate exports that this module uses. Only `openValidation` loads the package. */
export type Protovalidate = Pick<typeof import("@bufbuild/protovalidate"), "createValidator" | "violationsToProto"> &
  RuleSchemas;

/** The extensions and messages in `buf/validate/validate.proto` that contain rules. */
type RuleSchemas = Pick<
  typeof import("@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"),
  "field" | "FieldRulesSchema" | "message" | "MessageRulesSchema" | "oneof" | "predefined"
>;
