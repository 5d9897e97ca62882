import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import {
  problem,
  findField,
  hasCustomJsonRepresentation,
  hasObjectForm,
  jsonNameOf,
  type JsonStyle,
  quoteValue,
} from "../../../protobuf/index.ts";
import { findProtoField } from "./field-path.ts";
import { findParameter } from "./query.ts";

/** Removes fields from a response's JSON that the request has not selected. */
export type SelectFields = (json: string) => string;

/** Maximum nesting depth of a selection. Messages in JSON have the same limit. */
const maxDepth = 100;

/**
 * Creates the function that reads which response fields a request selects (AIP-157). The query parameters `$fields` and
 * `fields` or the header field `X-Goog-FieldMask` select fields. The function returns `undefined` if all fields are
 * selected, and throws a ConnectError `InvalidArgument` for an invalid selection.
 *
 * @param responseBody - the field that is the body; `""` for the complete message
 */
export function createFieldSelector(
  input: DescMessage,
  output: DescMessage,
  responseBody: string,
  style: JsonStyle,
): (query: string, fieldMask: string | null) => SelectFields | undefined {
  const bodyField = findProtoField(output, responseBody);
  const root = bodyField === undefined ? selectionFormOf(output) : formOfField(bodyField);
  // A parameter `fields` that names a request field sets this field.
  const names = ["$fields", ...(findField(input, "fields") === undefined ? ["fields"] : [])];
  return (query, fieldMask) => {
    const text = findParameter(query, names) ?? fieldMask ?? "";
    if (text.trim() === "") return undefined;
    const selected = new SelectionParser(text, style).parse(root);
    if (selected.isEntire) return undefined;
    return (json) => JSON.stringify(select(JSON.parse(json), selected));
  };
}

/** The kind of a selectable value. A message has the descriptor's fields. Maps and objects may have any key. */
type Form =
  | { readonly kind: "message"; readonly desc: DescMessage }
  | { readonly kind: "map"; readonly value: Form }
  | { readonly kind: "object" | "scalar" };

function selectionFormOf(desc: DescMessage): Form {
  if (!hasCustomJsonRepresentation(desc)) return { kind: "message", desc };
  const hasKeys = hasObjectForm(desc) || /^google\.protobuf\.(?:List)?Value$/.test(desc.typeName);
  return { kind: hasKeys ? "object" : "scalar" };
}

function formOfField({ message, fieldKind }: DescField): Form {
  const form: Form = message === undefined ? { kind: "scalar" } : selectionFormOf(message);
  return fieldKind === "map" ? { kind: "map", value: form } : form;
}

/** The selected members of an object, by JSON name. The name `*` selects each member of a map or a Struct. */
class Selected {
  isEntire = false;
  readonly members = new Map<string, Selected>();

  member(name: string): Selected {
    const member = this.members.get(name) ?? new Selected();
    this.members.set(name, member);
    return member;
  }
}

/**
 * Parses a selection:
 *
 *     selection = path *( "," path )
 *     path      = name [ ( "." / "/" ) path / "(" selection ")" ]
 *     name      = proto name / JSON name / key / "*"
 */
class SelectionParser {
  readonly #text: string;
  readonly #style: JsonStyle;
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(text: string, style: JsonStyle) {
    this.#text = text;
    this.#style = style;
    this.#tokens = text.match(/[,./()]|[^,./()\s]+/g) ?? [];
  }

  parse(root: Form): Selected {
    const selected = new Selected();
    this.#parseSelection(root, selected, 1);
    if (this.#at < this.#tokens.length) throw this.#invalid(`unexpected ${quoteValue(this.#tokens[this.#at] ?? "")}`);
    return selected;
  }

  #parseSelection(form: Form, selected: Selected, depth: number): void {
    do this.#parsePath(form, selected, depth);
    while (this.#accept(","));
  }

  #parsePath(form: Form, selected: Selected, depth: number): void {
    if (depth > maxDepth) throw this.#invalid(`it is nested more than ${maxDepth} levels deep`);
    const name = this.#tokens[this.#at++] ?? "";
    if (/^[,./()]?$/.test(name))
      throw this.#invalid(name === "" ? "a name is missing" : `unexpected ${quoteValue(name)}`);
    const hasMore = [".", "/", "("].includes(this.#tokens[this.#at] ?? "");
    if (name === "*" && !hasMore) {
      selected.isEntire = true;
      return;
    }
    const member = this.#member(form, name);
    const memberSelected = selected.member(member.name);
    if (this.#accept(".") || this.#accept("/")) this.#parsePath(member.form, memberSelected, depth + 1);
    else if (this.#accept("(")) {
      this.#parseSelection(member.form, memberSelected, depth + 1);
      if (!this.#accept(")")) throw this.#invalid('")" is missing');
    } else memberSelected.isEntire = true;
  }

  #member(form: Form, name: string): { readonly name: string; readonly form: Form } {
    if (form.kind === "map") return { name, form: form.value };
    if (form.kind === "object") return { name, form };
    const field = form.kind === "message" ? findField(form.desc, name) : undefined;
    if (field === undefined) throw this.#invalid(`there is no field ${quoteValue(name)}`);
    return { name: jsonNameOf(field, this.#style), form: formOfField(field) };
  }

  #accept(token: string): boolean {
    const isNext = this.#tokens[this.#at] === token;
    if (isNext) this.#at++;
    return isNext;
  }

  #invalid(reason: string): Error {
    return problem("ERR_QUERY_INVALID", `the field selection ${quoteValue(this.#text)} is not valid: ${reason}`);
  }
}

function select(json: JsonValue, selected: Selected): JsonValue {
  if (selected.isEntire || typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map((each) => select(each, selected));
  const members = Object.entries(json).flatMap(([name, value]) => {
    const member = selected.members.get(name) ?? selected.members.get("*");
    return member === undefined ? [] : [[name, select(value, member)] as const];
  });
  return Object.fromEntries(members);
}
