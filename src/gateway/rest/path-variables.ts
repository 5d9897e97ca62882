import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { FieldProblem } from "../json/field-problem.ts";
import type { Fields } from "../json/field-store.ts";
import type { ForbiddenFields } from "../json/read-context.ts";
import type { FieldPath, FieldSetter } from "./field-path.ts";
import { createFieldSetter, leafOf, printFieldPath, resolveFieldPath } from "./field-path.ts";
import type { PathTemplate } from "./path-template.ts";
import type { TextParser } from "./text-value.ts";
import { createTextParser } from "./text-value.ts";

/** What the variables of a path template do to a message. */
export interface PathVariables {
  /** The fields they bind. Nothing else may set these. */
  readonly fields: ForbiddenFields;
  /**
   * Puts the captured texts into a message, in the order of the template.
   *
   * @throws ConnectError `InvalidArgument` whose message names the field
   */
  set(fields: Fields, captures: readonly string[]): void;
}

interface BoundVariable {
  readonly name: string;
  readonly path: FieldPath;
  readonly parse: TextParser;
  readonly set: FieldSetter;
}

/**
 * Compiles the variables of a template for a request message.
 *
 * @throws Error when a variable names no field, or one that has no text form in a path
 */
export function compilePathVariables(input: DescMessage, template: PathTemplate): PathVariables {
  const variables = template.variables.map((variable) => bindVariable(input, variable.fieldPath));
  return {
    fields: toForbiddenFields(variables.map((variable) => variable.path)),
    set(fields, captures) {
      for (let at = 0; at < variables.length; at++) {
        const variable = variables[at];
        if (variable !== undefined) setVariable(variable, fields, captures[at] ?? "");
      }
    },
  };
}

function bindVariable(input: DescMessage, fieldPath: readonly string[]): BoundVariable {
  const name = fieldPath.join(".");
  const path = resolveFieldPath(input, fieldPath);
  // A rule speaks of fields by their proto names; a request may use JSON names as well.
  if (path === undefined || printFieldPath(path) !== name) {
    throw new Error(`path variable "${name}" is no field of ${input.typeName}`);
  }
  const leaf = leafOf(path);
  const parse = leaf.fieldKind === "list" ? undefined : createTextParser(leaf);
  if (parse === undefined) throw new Error(`path variable "${name}" is repeated, a map or a message`);
  return { name, path, parse, set: createFieldSetter(path) };
}

function setVariable(variable: BoundVariable, fields: Fields, text: string): void {
  try {
    variable.set(fields, variable.parse(text));
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    throw new ConnectError(`${variable.name}: ${error.message}`, Code.InvalidArgument);
  }
}

// Paths as a tree: a whole field is forbidden where a path ends, otherwise what lies below it.
function toForbiddenFields(paths: readonly FieldPath[]): ForbiddenFields {
  const forbidden = new Map<DescField, true | ForbiddenFields>();
  for (const [first, group] of Map.groupBy(paths, (path) => path[0])) {
    const below = group.map(([, second, ...rest]): FieldPath | undefined => second && [second, ...rest]);
    const deeper = below.filter((path) => path !== undefined);
    forbidden.set(first, deeper.length < group.length ? true : toForbiddenFields(deeper));
  }
  return forbidden;
}
