/**
 * Writes the path for a message.
 *
 * A call must never reach another resource than the resource in its message. Therefore, a variable must have a value
 * that matches the template. Clients and proxies resolve or merge the segments `.`, `..` and empty segments, so these
 * segments are refused. The written path is parsed again with the server's rules.
 */
import type { Message } from "@bufbuild/protobuf";
import { asFieldValues, type FieldValues, loadField } from "@protoport/gateway/messages";
import { leafOf, printTemplateLiteral, type TemplateSegment } from "@protoport/gateway/rest";
import { RefusalError } from "./refusal.ts";
import type { RestClientRule, RuleVariable } from "./rest-rule.ts";
import { escapeUrlValue, type UrlValues } from "./url-values.ts";

/**
 * Returns the escaped path for a message.
 *
 * @throws RefusalError that names a variable if its value cannot be in a path
 */
export function writePath(rule: RestClientRule, message: Message, texts: UrlValues): string {
  const { segments, verb } = rule.template;
  const values = rule.variables.map((variable) => variableText(variable, message, texts));
  const parts: string[] = [];
  let at = 0;
  for (const [index, variable] of rule.variables.entries()) {
    parts.push(...segments.slice(at, variable.start).flatMap(printFree));
    parts.push(...expandVariable(variable, values[index] ?? "", segments.slice(variable.start, variable.end)));
    at = variable.end;
  }
  parts.push(...segments.slice(at).flatMap(printFree));
  const path = `/${parts.join("/")}${verb === undefined ? "" : `:${printTemplateLiteral(verb)}`}`;
  requireUnambiguous(rule, path, values);
  return path;
}

/** Returns the value of a variable as a string, or `undefined` if the variable is not set. */
export function findVariableText({ path }: RuleVariable, message: Message, texts: UrlValues): string | undefined {
  let fields: FieldValues = asFieldValues(message);
  for (const field of path.slice(0, -1)) {
    const child = loadField(fields, field);
    if (child === undefined) return undefined;
    fields = asFieldValues(child);
  }
  return texts(leafOf(path))?.(fields)[0];
}

function variableText(variable: RuleVariable, message: Message, texts: UrlValues): string {
  const text = findVariableText(variable, message, texts);
  if (text === undefined || text === "") throw new RefusalError(`${variable.name}: must be set and not empty`);
  return text;
}

/** Prints a path segment that is not part of a variable. */
function printFree(segment: TemplateSegment): readonly string[] {
  if (segment.kind === "literal") return [printTemplateLiteral(segment.text)];
  if (segment.kind === "**") return [];
  throw new RefusalError('the path has a "*" that no field sets');
}

function expandVariable(
  { name, isMultiSegment }: RuleVariable,
  text: string,
  template: readonly TemplateSegment[],
): readonly string[] {
  // Each piece between slashes is checked, because some servers decode escaped slashes before splitting the path.
  const pieces = text.split("/");
  // Some servers treat a backslash as a slash.
  const invalidPiece = pieces.includes("") ? "" : text.split(/[/\\]/).find((piece) => piece === "." || piece === "..");
  if (invalidPiece !== undefined)
    throw new RefusalError(`${name}: must not contain the path segment "${invalidPiece}"`);
  const segments = isMultiSegment ? pieces : [text];
  if (!fits(segments, template)) {
    const printed = template.map((segment) => (segment.kind === "literal" ? segment.text : segment.kind)).join("/");
    throw new RefusalError(`${name}: does not match "${printed}"`);
  }
  const literals = literalsAt(segments.length, template);
  return segments.map((segment, at) =>
    literals.has(at) ? printTemplateLiteral(segment) : escapeUrlValue(name, segment),
  );
}

function fits(texts: readonly string[], template: readonly TemplateSegment[]): boolean {
  const extraSegments = texts.length - template.length;
  const hasWildcard = template.some(({ kind }) => kind === "**");
  if (hasWildcard ? extraSegments < -1 : extraSegments !== 0) return false;
  return [...literalsAt(texts.length, template)].every(([at, literal]) => texts[at] === literal);
}

/** Returns the literals in a template by position, for a path with `length` segments. */
function literalsAt(length: number, template: readonly TemplateSegment[]): ReadonlyMap<number, string> {
  const wildcardIndex = template.findIndex(({ kind }) => kind === "**");
  const literals = new Map<number, string>();
  for (const [at, segment] of template.entries()) {
    if (segment.kind !== "literal") continue;
    literals.set(wildcardIndex >= 0 && at > wildcardIndex ? at + length - template.length : at, segment.text);
  }
  return literals;
}

// A server that follows google/api/http.proto must match the path with `rule` and `values`. Some servers decode
// slashes, colons or both before splitting the path. The decoded path must match the same rule and values, or no rule.
function requireUnambiguous(rule: RestClientRule, path: string, values: readonly string[]): void {
  const withSlashes = path.replaceAll("%2F", "/");
  const withColons = path.replaceAll("%3A", ":");
  const withSlashesAndColons = withSlashes.replaceAll("%3A", ":");
  for (const reading of new Set([path, withSlashes, withColons, withSlashesAndColons])) {
    const match = rule.routes.match(rule.httpMethod, reading);
    if (match.kind !== "binding") {
      if (reading !== path) continue;
      throw new RefusalError(`the path ${path} matches no rule`);
    }
    const isSameRule = match.binding === rule.pattern;
    if (isSameRule && match.captures.every((capture, index) => capture === values[index])) continue;
    const otherRule = `${match.binding.httpMethod} ${match.binding.pathTemplate}`;
    throw new RefusalError(`${rule.variables[0]?.name ?? path}: the path ${path} could also match ${otherRule}`);
  }
}
