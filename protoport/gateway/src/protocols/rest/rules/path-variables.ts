import type { DescField, DescMessage } from "@bufbuild/protobuf";
import {
  problem,
  createUrlTextParser,
  FieldProblem,
  type FieldSetter,
  type FieldValues,
  type BoundFields,
  type UrlTextParser,
} from "../../../protobuf/index.ts";
import { createPathSetter, type FieldPath, leafOf, resolveProtoPath } from "./field-path.ts";
import type { PathTemplate, TemplateSegment, TemplateVariable } from "./path-template.ts";
import { RuleProblem, UnknownFieldProblem } from "./http-rule.ts";

/** The variables in a path template, compiled for a request message. */
export interface PathVariables {
  readonly boundFields: BoundFields;
  /** Sets the variables' fields to `captures`, in order. @throws ConnectError `InvalidArgument` that names the field */
  set(fields: FieldValues, captures: readonly string[]): void;
}

interface BoundVariable {
  readonly name: string;
  readonly path: FieldPath;
  readonly parse: UrlTextParser;
  readonly set: FieldSetter;
}

/** Compiles a template's variables. @throws RuleProblem if a variable names no field, or one that a path cannot set */
export function compilePathVariables(input: DescMessage, template: PathTemplate): PathVariables {
  const variables = template.variables.map((variable) => bindVariable(input, template, variable));
  return {
    boundFields: toBoundFields(variables.map((variable) => variable.path)),
    set(fields, captures) {
      for (const [at, variable] of variables.entries()) setVariable(variable, fields, captures[at] ?? "");
    },
  };
}

function bindVariable(input: DescMessage, template: PathTemplate, variable: TemplateVariable): BoundVariable {
  const { fieldPath } = variable;
  const name = fieldPath.join(".");
  const path = resolveProtoPath(input, fieldPath);
  if (path === undefined) throw new UnknownFieldProblem(`path variable "${name}" is not a field of ${input.typeName}`);
  const leaf = leafOf(path);
  const parse = leaf.fieldKind === "list" ? undefined : createUrlTextParser(leaf);
  if (parse === undefined)
    throw new RuleProblem(`path variable "${name}" must not be a repeated field, a map or a message`);
  if (!canCapture(template.segments.slice(variable.start, variable.end), parse)) {
    throw new RuleProblem(`path variable "${name}" can never match a value of its field`);
  }
  return { name, path, parse, set: createPathSetter(path) };
}

// Sample values for a variable's first wildcard. The samples have several lengths because base64, which may contain
// slashes, is only valid in some lengths.
const sampleTexts = ["A", "AA", "AAA", "AAAA"];

/** Returns whether a path can set a variable to a valid value. For example, `{id=orders/*}` cannot set a number. */
function canCapture(segments: readonly TemplateSegment[], parse: UrlTextParser): boolean {
  // The wildcard "**" may match no segment.
  const forms = [segments, segments.filter(({ kind }) => kind !== "**")];
  if (forms.some(([first, second]) => second === undefined && first?.kind !== "literal")) return true;
  return sampleTexts.some((sample) => forms.some((form) => accepts(parse, captureOf(form, sample))));
}

function captureOf(segments: readonly TemplateSegment[], sample: string): string {
  const sampleAt = segments.findIndex(({ kind }) => kind !== "literal");
  const texts = segments.map((segment, at) => {
    if (segment.kind === "literal") return segment.text;
    return at === sampleAt ? sample : "AAAA";
  });
  return texts.join("/");
}

function accepts(parse: UrlTextParser, text: string): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
}

function setVariable(variable: BoundVariable, fields: FieldValues, text: string): void {
  try {
    variable.set(fields, variable.parse(text));
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    throw problem("ERR_PATH_INVALID", `${variable.name}: ${error.message}`);
  }
}

function toBoundFields(paths: readonly FieldPath[]): BoundFields {
  const bound = new Map<DescField, "whole" | BoundFields>();
  for (const [first, group] of Map.groupBy(paths, (path) => path[0])) {
    const nested = group.flatMap(([, second, ...rest]): FieldPath[] => (second ? [[second, ...rest]] : []));
    bound.set(first, nested.length < group.length ? "whole" : toBoundFields(nested));
  }
  return bound;
}
