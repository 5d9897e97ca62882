import { type PathTemplate, printTemplateLiteral, type TemplateSegment, type TemplateVariable } from "../rest/index.ts";

/** A parameter of a path: a whole variable, or one wildcard of a variable that has several. */
export interface PathParameter {
  readonly name: string;
  /** The path of the request field, in proto names; `undefined` for a wildcard outside variables. */
  readonly fieldPath: readonly string[] | undefined;
  /** What the parameter's value stands for: the value of the field, part of it, or any number of segments. */
  readonly covers: "field" | "part" | "segments";
}

/** A path template as OpenAPI writes it. */
export interface OpenApiPath {
  readonly path: string;
  /** In the order of the path. */
  readonly parameters: readonly PathParameter[];
}

/**
 * Converts a path template to OpenAPI, where each parameter is one segment.
 *
 * `{name=shelves/*}` becomes `shelves/{name}`. Several wildcards become `{name_1}`, `{name_2}` and so on, and wildcards
 * outside variables `{segment_1}`. `**` becomes one parameter although it may take more segments, which OpenAPI 3.1
 * cannot express. The dots of a field path become `_`: they are allowed in names, but generators turn these names into
 * identifiers of their languages.
 */
export function toOpenApiPath({ segments, variables, verb }: PathTemplate): OpenApiPath {
  const variableAt = (at: number): TemplateVariable | undefined =>
    variables.find(({ start, end }) => start <= at && at < end);
  const wildcards = [...segments.keys()].filter((at) => segments[at]?.kind !== "literal");
  const parameters: PathParameter[] = [];
  const texts = segments.map((segment, at) => {
    if (segment.kind === "literal") return printTemplateLiteral(segment.text);
    const variable = variableAt(at);
    const siblings = wildcards.filter((other) => variableAt(other) === variable);
    const number = variable === undefined || siblings.length > 1 ? `_${siblings.indexOf(at) + 1}` : "";
    const name = freeName(`${variable?.fieldPath.join("_") ?? "segment"}${number}`, parameters);
    parameters.push({ name, fieldPath: variable?.fieldPath, covers: coverageOf(segment, variable) });
    return `{${name}}`;
  });
  return { path: `/${texts.join("/")}${verb === undefined ? "" : `:${printTemplateLiteral(verb)}`}`, parameters };
}

function coverageOf(segment: TemplateSegment, variable: TemplateVariable | undefined): PathParameter["covers"] {
  if (segment.kind === "**") return "segments";
  return variable !== undefined && variable.end - variable.start === 1 ? "field" : "part";
}

function freeName(name: string, taken: readonly PathParameter[]): string {
  return taken.some((parameter) => parameter.name === name) ? freeName(`${name}_`, taken) : name;
}

/** Returns the path without parameter names. OpenAPI considers paths that differ only in these to be the same. */
export function shapeOf(path: string): string {
  return path.replaceAll(/\{[^}]*\}/g, "{}");
}
