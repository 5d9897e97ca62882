import { toShortLine } from "../../../http/index.ts";
import { RuleProblem } from "./http-rule.ts";
import { decodePercent } from "./raw-path.ts";

/** A segment of a path template: a percent-decoded literal, `*` for one segment, or `**` for any number. */
export type TemplateSegment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "*" }
  | { readonly kind: "**" };

/** A variable in a path template, which names the request field that is set to the matched segments. */
export interface TemplateVariable {
  /** The field path from the request message, in proto names. */
  readonly fieldPath: readonly string[];
  /** The index of the variable's first segment. */
  readonly start: number;
  /** The index after the variable's last segment. */
  readonly end: number;
}

/** The parsed path template of a google.api.HttpRule. */
export interface PathTemplate {
  readonly segments: readonly TemplateSegment[];
  /** The variables in template order. */
  readonly variables: readonly TemplateVariable[];
  /** The decoded string after the colon at the end of the template. */
  readonly verb: string | undefined;
}

/**
 * Returns whether a variable can match more than one segment. The value of a multi-segment variable keeps `%2F` as
 * sent, because a decoded slash would look like a segment separator. Escapes other than `%2F` are decoded
 * (google/api/http.proto).
 */
export function isMultiSegment(template: PathTemplate, variable: TemplateVariable): boolean {
  const segments = template.segments.slice(variable.start, variable.end);
  return segments.length > 1 || segments[0]?.kind === "**";
}

/**
 * Prints a path template. Parsing the printed template returns the same template. A variable for one segment is printed
 * in the short form `{id}`. Literals have the necessary escapes.
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
 * Prints a template literal with escapes for characters that have a meaning in templates or are not allowed in a path.
 * A mounted gateway matches a literal only in the printed form.
 */
export function printTemplateLiteral(text: string): string {
  // encodeURIComponent does not escape "*", which would be a wildcard in a template.
  return text.replace(escapedInLiterals, (characters) => encodeURIComponent(characters).replaceAll("*", "%2A"));
}

// Matches characters that template literals contain only as escapes. The pattern matches runs of characters, because an
// emoji has two UTF-16 code units.
const escapedInLiterals = /[^A-Za-z0-9\-._~!$&'()+,;=@]+/g;

/**
 * Parses a path template by the google/api/http.proto grammar:
 *
 * ```
 * Template  = "/" Segments [ Verb ] ;
 * Segments  = Segment { "/" Segment } ;
 * Segment   = "*" | "**" | LITERAL | Variable ;
 * Variable  = "{" FieldPath [ "=" Segments ] "}" ;
 * FieldPath = IDENT { "." IDENT } ;
 * Verb      = ":" LITERAL ;
 * ```
 *
 * As the comments in http.proto require, variables do not nest and no field is bound twice. The literals `.` and `..`
 * are also rejected, because no path can match either literal. Two extensions are accepted. A template may be `/`,
 * which is the root path. Segments may follow `**`, as in some public APIs. A second `**` is rejected, because the
 * match would be ambiguous.
 *
 * @throws RuleProblem that quotes the template, and states the problem and the position of the problem
 */
export function parsePathTemplate(text: string): PathTemplate {
  return new Parser(text).parse();
}

// Matches a literal. Literals consist of path characters (RFC 3986 §3.3) without a meaning in templates. Allowed are
// unreserved characters, sub-delims except "*", "@", and percent escapes.
const literalToken = /(?:[A-Za-z0-9\-._~!$&'()+,;=@]|%[0-9A-Fa-f]{2})+/y;
const identToken = /[A-Za-z_][A-Za-z0-9_]*/y;

class Parser {
  readonly #text: string;
  #at = 0;
  readonly #segments: TemplateSegment[] = [];
  readonly #variables: TemplateVariable[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  parse(): PathTemplate {
    this.#expect("/");
    if (this.#isAtEnd) return { segments: [{ kind: "literal", text: "" }], variables: [], verb: undefined };
    this.#parseSegments(false);
    const verb = this.#consume(":") ? this.#parseLiteral("a verb") : undefined;
    if (!this.#isAtEnd) throw this.#problem(verb === undefined ? 'expected "/", ":" or the end' : "expected the end");
    return { segments: this.#segments, variables: this.#variables, verb };
  }

  #parseSegments(insideVariable: boolean): void {
    do {
      this.#parseSegment(insideVariable);
    } while (this.#consume("/"));
  }

  #parseSegment(insideVariable: boolean): void {
    const start = this.#at;
    if (this.#consume("**")) this.#addRest(start);
    else if (this.#consume("*")) this.#segments.push({ kind: "*" });
    else if (this.#consume("{")) this.#parseVariable(insideVariable ? start : undefined);
    else this.#segments.push({ kind: "literal", text: this.#parseLiteral('a literal, "*", "**" or a variable') });
  }

  #addRest(at: number): void {
    if (this.#segments.some((segment) => segment.kind === "**")) throw this.#problem('"**" must appear only once', at);
    this.#segments.push({ kind: "**" });
  }

  #parseVariable(insideVariableAt: number | undefined): void {
    if (insideVariableAt !== undefined) throw this.#problem("variables must not be nested", insideVariableAt);
    const fieldPath = this.#parseFieldPath();
    const start = this.#segments.length;
    // The variable {var} is short for {var=*}.
    if (this.#consume("=")) this.#parseSegments(true);
    else this.#segments.push({ kind: "*" });
    this.#expect("}");
    this.#variables.push({ fieldPath, start, end: this.#segments.length });
  }

  #parseFieldPath(): readonly string[] {
    const at = this.#at;
    const fieldPath: string[] = [];
    do {
      const ident = this.#consumeToken(identToken);
      if (ident === undefined) throw this.#problem("expected a field name");
      fieldPath.push(ident);
    } while (this.#consume("."));
    const overlapping = this.#variables.find((variable) => overlaps(variable.fieldPath, fieldPath));
    if (overlapping !== undefined) throw this.#problem(`field ${fieldPath.join(".")} is bound more than once`, at);
    return fieldPath;
  }

  #parseLiteral(what: string): string {
    const at = this.#at;
    const rawLiteral = this.#consumeToken(literalToken);
    if (rawLiteral === undefined) throw this.#problem(`expected ${what}`);
    const text = decodePercent(rawLiteral);
    if (text === undefined) throw this.#problem("percent escapes must be UTF-8", at);
    if (text === "." || text === "..") throw this.#problem(`no path can match the segment "${text}"`, at);
    return text;
  }

  get #isAtEnd(): boolean {
    return this.#at === this.#text.length;
  }

  /** Consumes a string if the template continues with this string. */
  #consume(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #expect(text: string): void {
    if (!this.#consume(text)) throw this.#problem(`expected "${text}"`);
  }

  #consumeToken(token: RegExp): string | undefined {
    token.lastIndex = this.#at;
    const text = token.exec(this.#text)?.[0];
    this.#at += text?.length ?? 0;
    return text;
  }

  #problem(problem: string, at = this.#at): RuleProblem {
    return new RuleProblem(`path template "${toShortLine(this.#text)}": ${problem} at character ${at + 1}`);
  }
}

// Returns whether two paths lead to the same field, or one path leads to a field inside the other path's field.
function overlaps(one: readonly string[], other: readonly string[]): boolean {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).join(".") === other.slice(0, length).join(".");
}
