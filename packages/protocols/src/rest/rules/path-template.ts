/**
 * One path template segment: a percent-decoded literal, `*` for one segment, or `**` for any number of segments.
 */
export type TemplateSegment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "*" }
  | { readonly kind: "**" };

/** A path template variable: the request field that is set to the matched segments. */
export interface TemplateVariable {
  /** The field path from the request message, in proto names. */
  readonly fieldPath: readonly string[];
  /** Its first segment's index. */
  readonly start: number;
  /** The index after its last segment. */
  readonly end: number;
}

/** A parsed google.api.HttpRule path template. */
export interface PathTemplate {
  readonly segments: readonly TemplateSegment[];
  /** In template order. */
  readonly variables: readonly TemplateVariable[];
  /** The decoded string after the colon at the end of the template. */
  readonly verb: string | undefined;
}

/**
 * Returns whether a variable can match more than one segment. Its value then keeps `%2F` as sent, because a decoded
 * slash would look like a segment separator. Everything else is decoded (google/api/http.proto).
 */
export function isMultiSegment(template: PathTemplate, variable: TemplateVariable): boolean {
  const segments = template.segments.slice(variable.start, variable.end);
  return segments.length > 1 || segments[0]?.kind === "**";
}

/**
 * Prints a path template so that parsing the result returns the same template. A variable that matches one segment is
 * printed in its short form (`{id}`), and literals with the necessary escapes.
 */
export function printPathTemplate(template: PathTemplate): string {
  const { segments, variables, verb } = template;
  const parts: string[] = [];
  let at = 0;
  for (const variable of variables) {
    parts.push(...segments.slice(at, variable.start).map(printSegment));
    const variableSegments = segments.slice(variable.start, variable.end).map(printSegment).join("/");
    const name = variable.fieldPath.join(".");
    parts.push(variableSegments === "*" ? `{${name}}` : `{${name}=${variableSegments}}`);
    at = variable.end;
  }
  parts.push(...segments.slice(at).map(printSegment));
  return `/${parts.join("/")}${verb === undefined ? "" : `:${printTemplateLiteral(verb)}`}`;
}

function printSegment(segment: TemplateSegment): string {
  return segment.kind === "literal" ? printTemplateLiteral(segment.text) : segment.kind;
}

/**
 * Prints a template literal in its only form that a mounted gateway matches: with escapes for all characters that
 * have a meaning in templates or are not allowed in a path, and for no others.
 */
export function printTemplateLiteral(text: string): string {
  // encodeURIComponent does not escape "*", which would be a wildcard here.
  return text.replace(escapedInLiterals, (characters) => encodeURIComponent(characters).replaceAll("*", "%2A"));
}

// All but the characters that template literals contain without an escape. Runs of several characters, because an
// emoji is two.
const escapedInLiterals = /[^A-Za-z0-9\-._~!$&'()+,;=@]+/g;
