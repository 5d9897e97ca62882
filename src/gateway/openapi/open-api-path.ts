import type { PathTemplate, TemplateSegment, TemplateVariable } from "../rest/path-template.ts";

/** A parameter of a path: all that a variable takes, or one of the segments that have a parameter each. */
export interface PathParameter {
  readonly name: string;
  /** The request field, in proto names; `undefined` for a wild card that belongs to no variable. */
  readonly fieldPath: readonly string[] | undefined;
  /** What the value of the parameter is of the field. */
  readonly covers: "field" | "part" | "segments";
}

/** A path template in the words of OpenAPI. */
export interface OpenApiPath {
  readonly path: string;
  /** In the order of the path. */
  readonly parameters: readonly PathParameter[];
}

/**
 * Writes a path template as OpenAPI does, whose parameters stand for one segment each.
 *
 * `{name=shelves/*}` becomes `shelves/{name}`, with several wild cards `{name_1}`, `{name_2}` and so on, and
 * a wild card outside of variables `{segment_1}`. `**` becomes a single parameter although it may take
 * more than one segment, which OpenAPI 3.1 has no words for.
 */
export function toOpenApiPath(template: PathTemplate): OpenApiPath {
  const { segments, variables, verb } = template;
  const parameters: PathParameter[] = [];
  let unnamed = 0;
  const texts = segments.map((segment, at) => {
    if (segment.kind === "literal") return printLiteral(segment.text);
    const variable = variables.find(({ start, end }) => start <= at && at < end);
    const parameter =
      variable === undefined
        ? { name: `segment_${++unnamed}`, fieldPath: undefined, covers: coverage(segment, undefined, segments) }
        : {
            name: parameterName(variable, segments, at),
            fieldPath: variable.fieldPath,
            covers: coverage(segment, variable, segments),
          };
    parameters.push(parameter);
    return `{${parameter.name}}`;
  });
  return { path: `/${texts.join("/")}${verb === undefined ? "" : `:${printLiteral(verb)}`}`, parameters };
}

/** The path without the names of its parameters: OpenAPI takes two paths that differ by nothing else for one. */
export function shapeOf(path: string): string {
  return path.replaceAll(/\{[^}]*\}/g, "{}");
}

function coverage(
  segment: TemplateSegment,
  variable: TemplateVariable | undefined,
  segments: readonly TemplateSegment[],
): PathParameter["covers"] {
  if (segment.kind === "**") return "segments";
  if (variable === undefined) return "part";
  return wildCards(variable, segments) === 1 && variable.end - variable.start === 1 ? "field" : "part";
}

function parameterName(variable: TemplateVariable, segments: readonly TemplateSegment[], at: number): string {
  const name = variable.fieldPath.join(".");
  if (wildCards(variable, segments) === 1) return name;
  return `${name}_${wildCards({ ...variable, end: at + 1 }, segments)}`;
}

function wildCards({ start, end }: TemplateVariable, segments: readonly TemplateSegment[]): number {
  return segments.slice(start, end).filter((segment) => segment.kind !== "literal").length;
}

function printLiteral(text: string): string {
  // RFC 3986 §3.3: a segment may hold "*" and ":", but here they would be read as template syntax.
  return encodeURIComponent(text).replaceAll("*", "%2A");
}
