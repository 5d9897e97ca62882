import { lineOf, type SourceElement } from "./source-line.ts";

/** A change in a definition that breaks clients, or may break clients. */
export interface Change {
  readonly rule: ChangeRule;
  readonly severity: Severity;
  /** The changed service, RPC, message, field or enum value, by full name, or an RPC with its route. */
  readonly subject: string;
  /** The difference between the definitions. */
  readonly change: string;
  /** A request that worked with the old definition, or a response to the request. */
  readonly before: string;
  /** The result that a client gets with the new definition. */
  readonly now: string;
  /** The file's import path in the new definition. For a removed service, the file in the old definition. */
  readonly file: string;
  /** Line number in the file. Undefined if the definition has no source info. */
  readonly line: number | undefined;
}

/** A change's descriptions for reports. */
export type ChangeText = Pick<Change, "change" | "before" | "now">;

/** A change list without duplicates. */
export class ChangeList {
  readonly #changes = new Map<string, Change>();

  /** Adds a change, unless the list has a change with this rule and subject. */
  add(rule: ChangeRule, subject: string, element: SourceElement, text: ChangeText): void {
    const key = `${rule} ${subject}`;
    if (this.#changes.has(key)) return;
    const { file, line } = lineOf(element);
    this.#changes.set(key, { rule, severity: severities[rule], subject, ...text, file, line });
  }

  /** Returns the changes, sorted by severity, file and line. Errors precede warnings. */
  sorted(): readonly Change[] {
    return [...this.#changes.values()].toSorted(
      (a, b) => a.severity.localeCompare(b.severity) || a.file.localeCompare(b.file) || (a.line ?? 0) - (b.line ?? 0),
    );
  }
}

/** `error` if a request that worked now fails or changes its response. `warning` if that depends on the client. */
export type Severity = "error" | "warning";

/** The name of a kind of change. */
export type ChangeRule =
  | "route-removed"
  | "route-taken"
  | "route-shadowed"
  | "path-variable-changed"
  | "field-moved"
  | "body-changed"
  | "response-body-changed"
  | "response-status-changed"
  | "field-required"
  | "rules-narrowed"
  | "scopes-changed"
  | "operation-id-changed"
  | "visibility-narrowed"
  | "element-hidden";

/** The kinds of change, each with its severity. */
export const severities: Readonly<Record<ChangeRule, Severity>> = {
  "route-removed": "error",
  "route-taken": "error",
  "route-shadowed": "warning",
  "path-variable-changed": "error",
  "field-moved": "error",
  "body-changed": "error",
  "response-body-changed": "error",
  "response-status-changed": "error",
  "field-required": "error",
  "rules-narrowed": "error",
  "scopes-changed": "error",
  "operation-id-changed": "warning",
  "visibility-narrowed": "error",
  "element-hidden": "error",
};
