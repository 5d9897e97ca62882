import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { makeFunction, messageClass, TypeScope, unsure } from "../made-code/index.ts";
import { setOwn } from "./field-values.ts";
import { fieldText, messageText, type ReaderNames } from "./made-reader-text.ts";
import { oncePer } from "./once-per.ts";
import { createValueReader, createWellKnownReader, type PlainReader, type Spelling } from "./plain-values.ts";
import { isMapKey } from "./text-forms.ts";

/** The quick readers for one spelling of values: code that is made when the first text of a type is read. */
export interface MadeReaders {
  readonly spelling: Spelling;
  /** Returns the reader of a message type, for its own JSON form if it has one. */
  of(desc: DescMessage): PlainReader;
  /** Returns the reader of all values of a field. */
  ofField(field: DescField): PlainReader;
}

/** Creates the quick readers for one spelling of values. */
export function createMadeReaders(spelling: Spelling): MadeReaders {
  const of = oncePer(
    (desc: DescMessage) => createWellKnownReader(desc, spelling) ?? lazyReader((names) => messageText(desc, names)),
  );
  function lazyReader(textOf: (names: ReaderNames) => string): PlainReader {
    const reader: PlainReader = {
      read(json, state) {
        reader.read = make(textOf);
        return reader.read(json, state);
      },
    };
    return reader;
  }
  function make(textOf: (names: ReaderNames) => string): PlainReader["read"] {
    const own = new TypeScope(scope);
    const text = textOf({
      name: (value) => own.name(value),
      constructorOf: (desc) => own.name(messageClass(desc)),
      readerOf: (desc) => own.name(of(desc)),
      valueReaderOf: (field) => own.name(createValueReader(field, spelling)),
    });
    return makeFunction(text, own.values);
  }
  return { spelling, of, ofField: oncePer((field: DescField) => lazyReader((names) => fieldText(field, names))) };
}

const scope = {
  hasOwn: Object.hasOwn,
  isArray: Array.isArray,
  isFinite: Number.isFinite,
  isMapKey,
  setOwn,
  unsure,
};
