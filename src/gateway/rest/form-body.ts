import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { problem } from "../errors/index.ts";
import {
  asFieldValues,
  type BoundFields,
  type FieldNotes,
  FieldProblem,
  hasCustomJsonRepresentation,
  UnknownNames,
} from "../json/index.ts";
import { childOf, findProtoField } from "./field-path.ts";
import type { ParametersSet } from "./parameters.ts";
import { type QueryBinding, readParameters } from "./query.ts";
import type { BodyReader } from "./request-body.ts";
import type { BindingOptions } from "./rest-options.ts";

/** Fields of a form: far more than a person fills in, and few enough that the names of all are found in milliseconds. */
const formFieldsMax = 1000;

/** The message that the fields of a form set, in a request message. */
export interface FormPlace {
  /** The request field that is this message; `undefined` for the request itself. */
  readonly field: DescField | undefined;
  readonly message: DescMessage;
  /** Fields of it that the path sets. */
  readonly bound: BoundFields;
}

/** Finds the message that a form may be; `undefined` for a body that is no message with fields. */
export function formPlaceOf(input: DescMessage, body: string, bound: BoundFields): FormPlace | undefined {
  const field = body === "*" ? undefined : findProtoField(input, body);
  const message = body === "*" ? input : field?.fieldKind === "message" ? field.message : undefined;
  if (message === undefined || hasCustomJsonRepresentation(message)) return undefined;
  const below = field === undefined ? bound : bound.get(field);
  return { field, message, bound: below === undefined || below === "whole" ? new Map() : below };
}

/** Returns how the fields of a form are bound. */
function bindForm({ message, bound }: FormPlace, options: BindingOptions): QueryBinding {
  const { lenient, mapsInQuery: takesMaps } = options;
  return { noun: "form field", message, boundFields: bound, lenient, takesMaps, isIgnored: undefined };
}

/** Opens the message that a form sets, in a request message. */
function openForm({ field }: FormPlace, message: Message): ParametersSet {
  const request = asFieldValues(message);
  try {
    const fields = field === undefined ? request : childOf(request, field);
    return { fields, seen: new Set(), unknown: new UnknownNames() };
  } catch (error) {
    // The path has set another member of its oneof.
    if (!(error instanceof FieldProblem)) throw error;
    throw problem("ERR_MESSAGE_INVALID", `${field?.name}: ${error.message}`);
  }
}

/** Notes the fields that a form has set, for an update mask. */
function noteFields({ field }: FormPlace, { seen }: ParametersSet, notes: FieldNotes | undefined): void {
  if (notes === undefined) return;
  // A list, and a map, is noted once.
  const paths = new Set([...seen].map((place) => place.replace(/\[.*$/s, "")));
  const prefix = field === undefined ? "" : `${field.name}.`;
  for (const path of paths) notes.paths.push(prefix + path);
}

const utf8 = new TextDecoder();

/**
 * Creates the reader of bodies that are forms: `name=value&…`, by the rules of a query.
 *
 * It throws a `ConnectError` of `InvalidArgument` that names the field, or says that there are too many.
 */
export function createFormReader(place: FormPlace, options: BindingOptions): NonNullable<BodyReader["setFields"]> {
  const binding = bindForm(place, options);
  return (message, body, notes) => {
    const texts = utf8.decode(body).split("&", formFieldsMax + 1);
    if (texts.length > formFieldsMax) {
      throw problem("ERR_MESSAGE_INVALID", `a form has at most ${formFieldsMax} fields`);
    }
    const set = openForm(place, message);
    const ignored = readParameters(binding, texts, set);
    noteFields(place, set, notes);
    return ignored;
  };
}
