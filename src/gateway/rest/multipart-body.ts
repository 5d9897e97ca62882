import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { asFieldValues, type BoundFields, type FieldNotes, FieldProblem, quote, UnknownNames } from "../json/index.ts";
import { createPathSetter, findProtoField, printFieldPath } from "./field-path.ts";
import { bindForm, type FormPlace, formPlaceOf, noteFields, openForm } from "./form-body.ts";
import { isHttpBodyType, isMediaType } from "./http-body.ts";
import { decodeText, type Part, readParts } from "./multipart-parts.ts";
import {
  invalid,
  type Parameter,
  type ParameterBinding,
  type ParametersSet,
  refuseUnknown,
  resolveParameter,
  setParameter,
} from "./parameters.ts";
import type { BindingOptions } from "./rest-options.ts";

/** The message that the parts of a form set, in a request message. */
export interface PartsPlace extends FormPlace {
  /** What the file is: the whole message, one field, or any field that is a google.api.HttpBody. */
  readonly file: "whole" | DescField | "any";
}

/**
 * Finds the message that a form with parts may be: the JSON body, or where that is a google.api.HttpBody, the request
 * around it. `undefined` for a body that is no message with fields, and where the path sets a part of the file.
 */
export function partsPlaceOf(input: DescMessage, body: string, bound: BoundFields): PartsPlace | undefined {
  const field = body === "*" ? undefined : findProtoField(input, body);
  const isFile = isHttpBodyType(body === "*" ? input : field?.message);
  if (!isFile) {
    const place = formPlaceOf(input, body, bound);
    return place && { ...place, file: "any" };
  }
  if (field === undefined ? bound.size > 0 : field.fieldKind !== "message" || bound.has(field)) return undefined;
  return { field: undefined, message: input, bound, file: field ?? "whole" };
}

/** Returns whether a field is the file of a form, or may be. */
export function isFileOf({ file }: PartsPlace, field: DescField): boolean {
  return field.fieldKind === "message" && isHttpBodyType(field.message) && (file === "any" || file === field);
}

/** Reads a form with parts into a message, and returns what it has set and ignored. */
export type PartsReader = (
  message: Message,
  body: Uint8Array,
  contentType: string,
  notes: FieldNotes | undefined,
) => ParametersSet;

/**
 * Creates the reader of bodies that are forms with parts: one file at most, and fields by the rules of a query.
 *
 * It throws a `ConnectError` of `InvalidArgument` that names the field, or says what is wrong with the form.
 */
export function createPartsReader(place: PartsPlace, options: BindingOptions): PartsReader {
  const binding = bindForm(place, options);
  return (message, body, contentType, notes) => {
    const set = place.file === "whole" ? wholeOf(message) : openForm(place, message);
    let files = 0;
    for (const part of readParts(body, contentType)) {
      if (part.name === "_charset_") requireUtf8(binding, part);
      else if (setPart(place, binding, part, set) && ++files > 1) {
        throw invalid(binding, `${quote(part.name)}: is a second file`);
      }
    }
    refuseUnknown(binding, set);
    noteFields(place, set, notes);
    return set;
  };
}

function wholeOf(message: Message): ParametersSet {
  return { fields: asFieldValues(message), seen: new Set(), unknown: new UnknownNames() };
}

/** Sets what a part is about, and returns whether that was a file. */
function setPart(place: PartsPlace, binding: ParameterBinding, part: Part, set: ParametersSet): boolean {
  const { name, fileName, content } = part;
  const isChosen = fileName !== "" || content.byteLength > 0;
  if (place.file === "whole") {
    if (isChosen) Object.assign(set.fields, fileOf(binding, part));
    return isChosen;
  }
  const parameter = resolveParameter(binding, name);
  const [last, ...around] = parameter === undefined ? [] : [...parameter.path].toReversed();
  if (around.some((field) => isFileOf(place, field))) throw invalid(binding, `${quote(name)}: is part of a file`);
  if (parameter !== undefined && last !== undefined && isFileOf(place, last)) {
    if (isChosen) setFile(binding, parameter, last, part, set);
    return isChosen;
  }
  if (fileName !== undefined && parameter !== undefined) throw invalid(binding, `${quote(name)}: is no file`);
  setParameter(binding, parameter, name, parameter === undefined ? "" : textOf(binding, part), set);
  return false;
}

function setFile(
  binding: ParameterBinding,
  { name, path, isPartlyBound }: Parameter,
  leaf: DescField,
  part: Part,
  { fields, seen }: ParametersSet,
): void {
  if (isPartlyBound) throw invalid(binding, `${quote(name)}: is bound by the path or the body`);
  if (leaf.fieldKind !== "message") return;
  try {
    createPathSetter(path)(fields, Object.assign(create(leaf.message), fileOf(binding, part)));
    seen.add(printFieldPath(path));
  } catch (error) {
    if (error instanceof FieldProblem) throw invalid(binding, `${quote(name)}: ${error.message}`);
    throw error;
  }
}

/** Returns the fields of a google.api.HttpBody. */
function fileOf(binding: ParameterBinding, { name, fileName, contentType, content }: Part): object {
  if (contentType !== undefined && !isMediaType(contentType)) throw wrongType(binding, name, "no media type");
  // RFC 7578 §4.4.
  const type = contentType ?? (fileName === undefined ? "text/plain" : "application/octet-stream");
  return { contentType: type, data: content };
}

const plainText = /^text\/plain[\t ]*(?:;[\t ]*charset=(?:"(?:utf-8|us-ascii)"|utf-8|us-ascii)[\t ]*)?$/i;

function textOf(binding: ParameterBinding, { name, contentType, content }: Part): string {
  const isText = contentType === undefined || plainText.test(contentType);
  if (!isText) throw wrongType(binding, name, "not text/plain in UTF-8");
  return decodeText(content);
}

/** Refuses a form that says it is in another charset (RFC 7578 §4.6). Browsers put in theirs. */
function requireUtf8(binding: ParameterBinding, part: Part): void {
  if (!/^utf-8$/i.test(textOf(binding, part))) throw invalid(binding, `"_charset_": is not UTF-8`);
}

function wrongType(binding: ParameterBinding, name: string, what: string): Error {
  return invalid(binding, `${quote(name)}: its content type is ${what}`);
}
