import { type PathTemplate, printTemplateLiteral, type TemplateVariable } from "@plantstore/protocols";

/** A path parameter: a variable, or one wildcard in a variable with several segments. */
export interface PathParameter {
  readonly name: string;
  /** The request field's path, in proto names, or `undefined` for a wildcard outside variables. */
  readonly fieldPath: readonly string[] | undefined;
  /** What the parameter's value is: the field value, a part, or any number of segments. */
  readonly covers: "field" | "part" | "segments";
  /** A description of where the part is in its field's value, or `undefined` for the complete value. */
  readonly description: string | undefined;
}

/** A path template as OpenAPI writes it. */
export interface OpenApiPath {
  readonly path: string;
  /** In the order in which they appear in the path. */
  readonly parameters: readonly PathParameter[];
}

/**
 * Converts a path template to OpenAPI, where each parameter is one segment.
 *
 * A wildcard in a variable with several segments is named by the literal before it, as AIP-122 names resource name
 * parts: `{name=shelves/*}` becomes `shelves/{shelf}`. Without such a literal it is numbered, as `{name_1}`,
 * `{name_2}` and so on, and wildcards outside variables are `{segment_1}`. `**` becomes one parameter although it may
 * match several segments, which OpenAPI 3.1 cannot express. Dots in a field path become `_`. Dots are allowed in
 * names, but generators convert these names to their languages' identifiers.
 */
export function toOpenApiPath({ segments, variables, verb }: PathTemplate): OpenApiPath {
  const variableAt = (at: number): TemplateVariable | undefined =>
    variables.find(({ start, end }) => start <= at && at < end);
  const wildcards = [...segments.keys()].filter((at) => segments[at]?.kind !== "literal");
  const numberOf = (at: number): number =>
    wildcards.filter((other) => variableAt(other) === variableAt(at)).indexOf(at) + 1;
  const literalBefore = (at: number): string | undefined => {
    const precedingSegment = at > (variableAt(at)?.start ?? at) ? segments[at - 1] : undefined;
    return precedingSegment?.kind === "literal" ? precedingSegment.text : undefined;
  };
  const nameOf = (at: number): string => {
    const variable = variableAt(at);
    const field = variable?.fieldPath.join("_") ?? "segment";
    if (variable !== undefined && !hasParts(variable)) return field;
    return memberOf(literalBefore(at) ?? "") ?? `${field}_${numberOf(at)}`;
  };
  // Wildcards are shown by name. `*/` would end the comments that generators create from this text.
  const formOf = ({ start, end }: TemplateVariable): string =>
    segments
      .slice(start, end)
      .map((segment, at) => (segment.kind === "literal" ? segment.text : `{${nameOf(start + at)}}`))
      .join("/");
  const descriptionOf = (variable: TemplateVariable, at: number): string => {
    const literal = literalBefore(at);
    const part = literal === undefined ? `Wildcard ${numberOf(at)}` : `The part after \`${literal}/\``;
    return `${part} in \`${variable.fieldPath.join(".")}\`, whose format is \`${formOf(variable)}\`.`;
  };
  const parameters: PathParameter[] = [];
  const texts = segments.map((segment, at) => {
    if (segment.kind === "literal") return printTemplateLiteral(segment.text);
    const variable = variableAt(at);
    const isWhole = variable !== undefined && !hasParts(variable);
    parameters.push({
      name: freeName(nameOf(at), parameters),
      fieldPath: variable?.fieldPath,
      covers: segment.kind === "**" ? "segments" : isWhole ? "field" : "part",
      description: variable === undefined || isWhole ? undefined : descriptionOf(variable, at),
    });
    return `{${parameters.at(-1)?.name}}`;
  });
  return { path: `/${texts.join("/")}${verb === undefined ? "" : `:${printTemplateLiteral(verb)}`}`, parameters };
}

function hasParts({ start, end }: TemplateVariable): boolean {
  return end - start > 1;
}

// A collection (AIP-122), such as `cryptoKeys`.
const collection = /^[A-Za-z][A-Za-z0-9_-]*$/;

/**
 * Returns the name for one collection member in snake_case, as the English singular form from the collection's name
 * (`policies`, `addresses`, `shelves`, `topics`), or `undefined` for a literal that is not a collection name.
 */
function memberOf(literal: string): string | undefined {
  if (!collection.test(literal)) return undefined;
  const name = literal
    .replaceAll(/(?<=[a-z0-9])[A-Z]/g, "_$&")
    .replaceAll("-", "_")
    .toLowerCase();
  const [pattern, singular] = singulars.find(([plural]) => plural.test(name)) ?? [/$/, ""];
  return name.replace(pattern, singular);
}

// The first pattern that matches applies.
const singulars: readonly (readonly [plural: RegExp, singular: string])[] = [
  [/(?<=series|species|status|ss|sis)$/, ""],
  [/ies$/, "y"],
  [/elves$/, "elf"],
  [/(?<=ss|sh|[nrt]ch|x|alias|status)es$/, ""],
  [/s$/, ""],
];

function freeName(name: string, taken: readonly PathParameter[]): string {
  return taken.some((parameter) => parameter.name === name) ? freeName(`${name}_`, taken) : name;
}

/** Returns the path without parameter names. OpenAPI treats paths that differ only in these as identical. */
export function shapeOf(path: string): string {
  return path.replaceAll(/\{[^}]*\}/g, "{}");
}
