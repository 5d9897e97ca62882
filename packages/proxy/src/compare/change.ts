import { type ChangeRule, severities, type Severity } from "./change-rules.ts";
import { lineOf, type Place } from "./source-line.ts";

/** A change to a definition that breaks clients, or may break some. */
export interface Change {
  readonly rule: ChangeRule;
  readonly severity: Severity;
  /** What changed: the full name of a service, RPC, message, field or enum value, or an RPC and its route. */
  readonly subject: string;
  /** What is different in the definition. */
  readonly change: string;
  /** The request that worked with the old definition, or the response that it had. */
  readonly before: string;
  /** What a client sees with the new definition. */
  readonly now: string;
  /** The file in the new definition, as it is imported. For a removed service, the file in the old one. */
  readonly file: string;
  /** `undefined` if the definition has no source info. */
  readonly line: number | undefined;
}

/** The parts of a change that depend on the definitions. */
export type ChangeText = Pick<Change, "change" | "before" | "now"> & { readonly severity?: Severity };

/** Collects changes, each one once. */
export class ChangeList {
  readonly #changes = new Map<string, Change>();

  /** Adds a change, unless there is one with this rule and subject. */
  add(rule: ChangeRule, subject: string, place: Place, { severity, ...text }: ChangeText): void {
    const key = `${rule} ${subject}`;
    if (this.#changes.has(key)) return;
    const { file, line } = lineOf(place);
    this.#changes.set(key, { rule, severity: severity ?? severities[rule], subject, ...text, file, line });
  }

  /** Returns the changes, errors first, each group by file and line. */
  sorted(): readonly Change[] {
    return [...this.#changes.values()].toSorted(
      (a, b) => a.severity.localeCompare(b.severity) || a.file.localeCompare(b.file) || (a.line ?? 0) - (b.line ?? 0),
    );
  }
}
