import { PathTemplateScanner } from "./path-template-scanner.ts";
import type { PathTemplate, TemplateSegment, TemplateVariable } from "./path-template.ts";
import { decodePercent } from "./percent.ts";

/**
 * Parses a path template by the grammar of google/api/http.proto:
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
 * As its prose says, variables are not nested and no field is bound twice. Also refused are literals `.`
 * and `..`, which no path can match, and a segment that is partly a variable, which the grammar has no
 * place for. Supported beyond it are the template `/` alone, for the root has to be nameable, and segments
 * behind `**`, which the prose forbids but some public APIs have; a second `**` would be ambiguous.
 *
 * @throws Error that quotes the template and says what is wrong where
 */
export function parsePathTemplate(text: string): PathTemplate {
  const parser = new Parser(new PathTemplateScanner(text));
  return parser.parse();
}

class Parser {
  readonly #scanner: PathTemplateScanner;
  readonly #segments: TemplateSegment[] = [];
  readonly #variables: TemplateVariable[] = [];

  constructor(scanner: PathTemplateScanner) {
    this.#scanner = scanner;
  }

  parse(): PathTemplate {
    const scanner = this.#scanner;
    scanner.expect("/");
    if (scanner.done) return { segments: [{ kind: "literal", text: "" }], variables: [], verb: undefined };
    this.#parseSegments(false);
    const verb = scanner.take(":") ? this.#parseLiteral("a verb") : undefined;
    if (!scanner.done) throw scanner.problem('wants "/", ":" or its end');
    return { segments: this.#segments, variables: this.#variables, verb };
  }

  #parseSegments(insideVariable: boolean): void {
    do {
      this.#parseSegment(insideVariable);
    } while (this.#scanner.take("/"));
  }

  #parseSegment(insideVariable: boolean): void {
    const scanner = this.#scanner;
    if (scanner.take("**")) this.#addRest();
    else if (scanner.take("*")) this.#segments.push({ kind: "*" });
    else if (scanner.take("{")) this.#parseVariable(insideVariable);
    else this.#segments.push({ kind: "literal", text: this.#parseLiteral('a literal, "*", "**" or a variable') });
  }

  #addRest(): void {
    if (this.#segments.some((segment) => segment.kind === "**")) throw this.#scanner.problem('has a second "**"');
    this.#segments.push({ kind: "**" });
  }

  #parseVariable(insideVariable: boolean): void {
    const scanner = this.#scanner;
    if (insideVariable) throw scanner.problem("has a variable inside of a variable");
    const fieldPath = this.#parseFieldPath();
    const start = this.#segments.length;
    // A variable without segments of its own is one segment: {var} is {var=*}.
    if (scanner.take("=")) this.#parseSegments(true);
    else this.#segments.push({ kind: "*" });
    scanner.expect("}");
    this.#variables.push({ fieldPath, start, end: this.#segments.length });
  }

  #parseFieldPath(): readonly string[] {
    const scanner = this.#scanner;
    const fieldPath: string[] = [];
    do {
      const ident = scanner.takeIdent();
      if (ident === undefined) throw scanner.problem("wants a field name");
      fieldPath.push(ident);
    } while (scanner.take("."));
    const taken = this.#variables.find((variable) => overlaps(variable.fieldPath, fieldPath));
    if (taken !== undefined) throw scanner.problem(`binds field ${fieldPath.join(".")} more than once`);
    return fieldPath;
  }

  #parseLiteral(what: string): string {
    const scanner = this.#scanner;
    const raw = scanner.takeLiteral();
    if (raw === undefined) throw scanner.problem(`wants ${what}`);
    const text = decodePercent(raw);
    if (text === undefined) throw scanner.problem("has an escape that is not UTF-8");
    if (text === "." || text === "..") throw scanner.problem(`has the segment "${text}", which no path can match`);
    return text;
  }
}

// A field, and a field inside of it, cannot both be bound.
function overlaps(one: readonly string[], other: readonly string[]): boolean {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).join(".") === other.slice(0, length).join(".");
}
