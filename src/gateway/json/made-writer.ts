import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { makeFunction, mayMakeCode, refuse, TypeScope } from "../made-code/index.ts";
import { mayHold } from "./field-values.ts";
import { listAs, listBy, mapAs, mapBy } from "./json-elements.ts";
import { wellKnownJsonForm } from "./json-forms.ts";
import { fieldText, messageText, type WriterNames } from "./made-writer-text.ts";
import { oncePer } from "./once-per.ts";
import type { JsonStyle, ToJson } from "./write-context.ts";

/** The quick writers of all types in one style: code that is made when the first message of a type is written. */
export interface MadeWriters {
  /** Returns the writer of a type, or `undefined` if its messages are left to the exact writer. */
  of(desc: DescMessage): ToJson | undefined;
  /** Returns the writer of one field of a message, or `undefined` as above. Left out is what becomes `undefined`. */
  ofField(field: DescField): ToJson | undefined;
}

/** Creates the quick writers for one style. */
export function createMadeWriters(style: JsonStyle): MadeWriters {
  const writerOf = oncePer((desc: DescMessage) => wellKnownJsonForm(desc, style) ?? lazyWriter(desc));
  const isSure = oncePer((desc: DescMessage) => mayMakeCode() && !mayHold(desc, (each) => isRare(each, style)));
  const make = (textOf: (names: WriterNames) => string): ToJson["toJson"] => {
    const own = new TypeScope(scope);
    const text = textOf({ name: (value) => own.name(value), writer: (desc) => own.name(writerOf(desc)) });
    return makeFunction(text, own.values);
  };
  function lazyWriter(desc: DescMessage): ToJson {
    const writer: ToJson = {
      toJson(message) {
        writer.toJson = make((names) => messageText(desc, style, names));
        return writer.toJson(message);
      },
    };
    return writer;
  }
  return {
    of: (desc) => (isSure(desc) ? writerOf(desc) : undefined),
    ofField: (field) =>
      isSure(field.parent) ? { toJson: make((names) => fieldText(field, style, names)) } : undefined,
  };
}

/**
 * Writes what a writer makes of a message, or returns `undefined` if that is left to the exact writer: what is rare, what
 * cannot be written, and whatever is no message of protobuf-es.
 */
export function writeQuickly(writer: ToJson, message: unknown): { readonly text: string | undefined } | undefined {
  try {
    return { text: JSON.stringify(writer.toJson(message)) };
  } catch {
    return undefined;
  }
}

// An Any is written by the registry, in an order of its own. And no object has two members of one name, or one that is
// a number in its place, or one that is its prototype.
function isRare({ typeName, fields }: DescMessage, { useProtoFieldName }: JsonStyle): boolean {
  if (typeName === AnySchema.typeName) return true;
  const names = fields.map(({ name, jsonName }) => (useProtoFieldName === true ? name : jsonName));
  return new Set(names).size < names.length || names.some((name) => /^[0-9]|^__proto__$/.test(name));
}

const scope = { hasOwn: Object.hasOwn, isEmpty, listAs, listBy, mapAs, mapBy, oneof, refuse };

function isEmpty(value: unknown): boolean {
  return value instanceof Uint8Array && value.byteLength === 0;
}

function oneof(value: unknown): object {
  return typeof value === "object" && value !== null ? value : refuse();
}
