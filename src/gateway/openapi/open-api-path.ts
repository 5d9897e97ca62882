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
 * more than one segment, which OpenAPI 3.1 has no words for. The dots of a field path become `_`: nothing
 * forbids them in names, but generators make names of their languages out of these.
 */
export function toOpenApiPath(template: PathTemplate): OpenApiPath {
  const { segments, verb } = template;
  const parameters: PathParameter[] = [];
  const texts = segments.map((segment, at) => {
    if (segment.kind === "literal") return printLiteral(segment.text);
    const parameter = toParameter(template, segment, at);
    const name = freeName(parameter.name, parameters);
    parameters.push({ ...parameter, name });
    return `{${name}}`;
  });
  return { path: `/${texts.join("/")}${verb === undefined ? "" : `:${printLiteral(verb)}`}`, parameters };
}

/** The path without the names of its parameters: OpenAPI takes two paths that differ by nothing else for one. */
export function shapeOf(path: string): string {
  return path.replaceAll(/\{[^}]*\}/g, "{}");
}

function toParameter(template: PathTemplate, segment: TemplateSegment, at: number): PathParameter {
  const { segments, variables } = template;
  const variable = variables.find(({ start, end }) => start <= at && at < end);
  const covers = segment.kind === "**" ? "segments" : "part";
  if (variable === undefined) {
    const outside = segments
      .slice(0, at + 1)
      .filter(
        (other, index) =>
          other.kind !== "literal" && !variables.some(({ start, end }) => start <= index && index < end),
      );
    return { name: `segment_${outside.length}`, fieldPath: undefined, covers };
  }
  const { fieldPath } = variable;
  const name = fieldPath.join("_");
  const wildCards = wildCardsOf(variable, segments);
  if (wildCards > 1)
    return { name: `${name}_${wildCardsOf({ ...variable, end: at + 1 }, segments)}`, fieldPath, covers };
  const isField = segment.kind === "*" && variable.end - variable.start === 1;
  return { name, fieldPath, covers: isField ? "field" : covers };
}

function freeName(name: string, taken: readonly PathParameter[]): string {
  return taken.some((parameter) => parameter.name === name) ? freeName(`${name}_`, taken) : name;
}

function wildCardsOf({ start, end }: TemplateVariable, segments: readonly TemplateSegment[]): number {
  return segments.slice(start, end).filter((segment) => segment.kind !== "literal").length;
}

function printLiteral(text: string): string {
  // RFC 3986 §3.3: a segment may hold "*" and ":", but here they would be read as template syntax.
  return encodeURIComponent(text).replaceAll("*", "%2A");
}
