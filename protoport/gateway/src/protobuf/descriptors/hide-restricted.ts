import { create, mergeFromBinary, type Message, toBinary, type UnknownField } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
  MessageOptions,
  MethodDescriptorProto,
  MethodOptions,
  ServiceDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import { arrayOfStrings, type OptionNames, required } from "../../http/index.ts";
import { http } from "../gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "../gen/google/api/http_pb.ts";
import { copyWith } from "./complete-files.ts";
import { DroppedImports, ListPositions } from "./needed-files.ts";
import { type EncodedField, fieldsOf } from "./parse-files.ts";
import { joinNames } from "./validate-files.ts";

/** Options for hiding elements by their `google.api.visibility` rules. */
export interface VisibilityOptions {
  /** The allowed labels. An element is hidden if its rule has no allowed label. */
  readonly allow: readonly string[];
}

/** The option names in {@link VisibilityOptions}. */
export const visibilityOptionNames: OptionNames<VisibilityOptions> = { allow: arrayOfStrings(required) };

/** Files without restricted elements. */
export interface VisibleFiles {
  readonly visible: readonly FileDescriptorProto[];
  /** The full names of hidden messages, and of messages and enums with hidden fields, extensions or values. */
  readonly restricted: ReadonlySet<string>;
  /** The numbers that only hidden enum values have, as `package.Enum=2`. */
  readonly hiddenNumbers: ReadonlySet<string>;
  /** The hidden services and RPCs, as `package.Service` and `package.Service.Method`. */
  readonly hiddenRpcs: ReadonlySet<string>;
  /** All labels in visibility rules. */
  readonly labels: ReadonlySet<string>;
}

/** The number of the six extensions in google/api/visibility.proto, which a descriptor set may lack. */
const visibilityNumber = 72295727;

/** The number of `VisibilityRule.restriction`. Field 1 is `selector`, which options do not use. */
const restrictionNumber = 2;

/**
 * Returns files without their hidden services, methods, messages, fields, enums and enum values. An element is hidden
 * if its `google.api.visibility` rule has no allowed label, or if the element uses a hidden type. Imports that only
 * hidden elements need are removed. Hidden fields are also removed from `buf.validate` oneof rules, and bindings that
 * name a hidden field from HTTP rules. Comments stay with their descriptors. Yields after each file.
 *
 * @throws Error if an enum's first value is hidden, because fields have this value by default
 */
export function* hideRestricted(
  input: readonly FileDescriptorProto[],
  { allow }: VisibilityOptions,
): Generator<number, VisibleFiles> {
  const rules = new VisibilityRules(new Set(allow.flatMap(labelsOf)), new DroppedImports(input));
  for (const file of input) {
    rules.addHiddenTypes(file.messageType, file.enumType, file.package, false);
    yield 0;
  }
  const files: FileDescriptorProto[] = [];
  for (const file of input) {
    files.push(rules.visiblePartOf(file));
    yield 0;
  }
  const { restricted, hiddenNumbers, hiddenRpcs, labels } = rules;
  return { visible: files, restricted, hiddenNumbers, hiddenRpcs, labels };
}

/** Returns the labels in a list such as "PREVIEW, INTERNAL". */
export function labelsOf(restriction: string): readonly string[] {
  return restriction
    .split(",")
    .map((label) => label.trim())
    .filter((label) => label !== "");
}

interface Restrictable {
  readonly options?: Pick<Message, "$unknown"> | undefined;
}

class VisibilityRules {
  readonly labels = new Set<string>();
  readonly restricted = new Set<string>();
  readonly hiddenNumbers = new Set<string>();
  readonly hiddenRpcs = new Set<string>();
  readonly #allowed: ReadonlySet<string>;
  readonly #droppedImports: DroppedImports;
  readonly #hiddenTypes = new Set<string>();
  /** All messages by full name, with a leading dot. */
  readonly #messages = new Map<string, DescriptorProto>();

  constructor(allowed: ReadonlySet<string>, droppedImports: DroppedImports) {
    this.#allowed = allowed;
    this.#droppedImports = droppedImports;
  }

  /** Adds the hidden types in a package or message. All types in a hidden message (`isHidden`) are hidden. */
  addHiddenTypes(
    messages: readonly DescriptorProto[],
    enums: readonly EnumDescriptorProto[],
    scope: string,
    isHidden: boolean,
  ): void {
    for (const desc of enums)
      if (!this.#isVisible(desc) || isHidden) this.#hiddenTypes.add(joinNames(scope, desc.name));
    for (const message of messages) {
      const typeName = joinNames(scope, message.name);
      this.#messages.set(`.${typeName}`, message);
      const isHiddenHere = !this.#isVisible(message) || isHidden;
      if (isHiddenHere) {
        this.#hiddenTypes.add(typeName);
        this.restricted.add(typeName);
      }
      this.addHiddenTypes(message.nestedType, message.enumType, typeName, isHiddenHere);
    }
  }

  visiblePartOf(file: FileDescriptorProto): FileDescriptorProto {
    const positions = new ListPositions();
    const { service: all, messageType, enumType, extension } = file;
    const inFile = (name: string): boolean => this.#isTypeVisible(joinNames(file.package, name));
    const service = positions.filter([6], all, (each) => {
      const isVisible = this.#isVisible(each);
      if (!isVisible) this.#addHiddenService(joinNames(file.package, each.name), each);
      return isVisible;
    });
    const reduced = copyWith(file, {
      messageType: positions
        .filter([4], messageType, ({ name }) => inFile(name))
        .map(([message, at]) =>
          this.#visiblePartOfMessage(message, joinNames(file.package, message.name), positions, [4, at]),
        ),
      enumType: positions
        .filter([5], enumType, ({ name }) => inFile(name))
        .map(([desc, at]) => this.#visiblePartOfEnum(desc, joinNames(file.package, desc.name), positions, [5, at])),
      extension: positions.filter([7], extension, (field) => this.#isExtensionVisible(field)).map(([field]) => field),
      service: service.map(([desc, at]) => {
        const method = positions.filter([6, at, 2], desc.method, (each) => {
          const types = [each.inputType, each.outputType];
          const isVisible = this.#isVisible(each) && types.every((name) => this.#isTypeVisible(name));
          if (!isVisible) this.hiddenRpcs.add(joinNames(joinNames(file.package, desc.name), each.name));
          return isVisible;
        });
        return copyWith(desc, {
          method: method.map(([each]) => withoutHiddenBindings(each, (name, path) => this.#isHiddenPath(name, path))),
        });
      }),
    });
    const visible = this.#droppedImports.removeFrom(file, reduced, positions);
    const { sourceCodeInfo } = file;
    if (sourceCodeInfo === undefined) return visible;
    const location = sourceCodeInfo.location.flatMap((each) => {
      const path = positions.translate(each.path);
      return path === undefined ? [] : [path === each.path ? each : copyWith(each, { path })];
    });
    return copyWith(visible, { sourceCodeInfo: copyWith(sourceCodeInfo, { location }) });
  }

  #addHiddenService(typeName: string, { method }: ServiceDescriptorProto): void {
    this.hiddenRpcs.add(typeName);
    for (const { name } of method) this.hiddenRpcs.add(joinNames(typeName, name));
  }

  #visiblePartOfMessage(
    message: DescriptorProto,
    typeName: string,
    positions: ListPositions,
    path: readonly number[],
  ): DescriptorProto {
    const entries = message.nestedType.filter(({ options }) => options?.mapEntry === true);
    // A map is hidden if its values are hidden.
    for (const entry of entries)
      if (entry.field.some((field) => !this.#isFieldVisible(field)))
        this.#hiddenTypes.add(joinNames(typeName, entry.name));
    const field = positions
      .filter([...path, 2], message.field, (each) => this.#isFieldVisible(each))
      .map(([each]) => each);
    const isReduced = field.length < message.field.length;
    if (isReduced) this.restricted.add(typeName);
    const { options } = message;
    const used = new Set(field.flatMap((each) => (hasOneof(each) ? [each.oneofIndex] : [])));
    const oneofDecl = positions.filter([...path, 8], message.oneofDecl, (_, at) => used.has(at));
    const newIndex = new Map(oneofDecl.map(([, old], at) => [old, at]));
    const isVisible = ({ name }: { readonly name: string }): boolean => this.#isTypeVisible(joinNames(typeName, name));
    return copyWith(message, {
      ...(isReduced && options && { options: withoutOneofFields(options, namesWithout(message.field, field)) }),
      field: field.map((each) =>
        hasOneof(each) ? copyWith(each, { oneofIndex: newIndex.get(each.oneofIndex) ?? 0 }) : each,
      ),
      oneofDecl: oneofDecl.map(([each]) => each),
      extension: positions
        .filter([...path, 6], message.extension, (each) => this.#isExtensionVisible(each))
        .map(([each]) => each),
      nestedType: positions
        .filter([...path, 3], message.nestedType, isVisible)
        .map(([each, at]) =>
          this.#visiblePartOfMessage(each, joinNames(typeName, each.name), positions, [...path, 3, at]),
        ),
      enumType: positions
        .filter([...path, 4], message.enumType, isVisible)
        .map(([each, at]) =>
          this.#visiblePartOfEnum(each, joinNames(typeName, each.name), positions, [...path, 4, at]),
        ),
    });
  }

  #visiblePartOfEnum(
    desc: EnumDescriptorProto,
    typeName: string,
    positions: ListPositions,
    path: readonly number[],
  ): EnumDescriptorProto {
    const value = positions.filter([...path, 2], desc.value, (each) => this.#isVisible(each)).map(([each]) => each);
    if (value.length < desc.value.length) this.restricted.add(typeName);
    const visible = new Set(value.map(({ number }) => number));
    for (const { number } of desc.value) if (!visible.has(number)) this.hiddenNumbers.add(`${typeName}=${number}`);
    const [first] = desc.value;
    if (first !== undefined && value[0] !== first)
      throw new Error(`the first value of ${typeName} cannot be hidden: it is the default of fields`);
    return copyWith(desc, { value });
  }

  /** Returns whether an extension is visible. If the extension is hidden, the extended message counts as restricted. */
  #isExtensionVisible(field: FieldDescriptorProto): boolean {
    const isVisible = this.#isFieldVisible(field);
    if (!isVisible) this.restricted.add(field.extendee.replace(/^\./, ""));
    return isVisible;
  }

  #isFieldVisible(field: FieldDescriptorProto): boolean {
    return this.#isVisible(field) && [field.typeName, field.extendee].every((name) => this.#isTypeVisible(name));
  }

  /** Returns whether a proto name path leads to a hidden field. Other unknown names are problems of the HTTP rule. */
  #isHiddenPath(typeName: string, path: string): boolean {
    let message = this.#messages.get(typeName);
    for (const name of path.split(".")) {
      const field = message?.field.find((each) => each.name === name);
      if (field === undefined) return false;
      message = this.#messages.get(field.typeName);
      const values = message?.options?.mapEntry === true ? message.field : [];
      if (![field, ...values].every((each) => this.#isFieldVisible(each))) return true;
    }
    return false;
  }

  /** Returns whether a type is visible. @param name - with or without a leading dot */
  #isTypeVisible(name: string): boolean {
    return !this.#hiddenTypes.has(name.startsWith(".") ? name.slice(1) : name);
  }

  /** Returns whether an element has no visibility rule, or a rule with an allowed label. */
  #isVisible(element: Restrictable): boolean {
    const labels = visibilityLabelsOf(element);
    for (const label of labels) this.labels.add(label);
    return labels.length === 0 || labels.some((label) => this.#allowed.has(label));
  }
}

/** Returns the labels in an element's visibility rule, if any. @throws RangeError if the rule is malformed */
export function visibilityLabelsOf({ options }: Restrictable): readonly string[] {
  return (options?.$unknown ?? []).filter(({ no }) => no === visibilityNumber).flatMap(labelsOfRule);
}

function namesWithout(
  all: readonly FieldDescriptorProto[],
  some: readonly FieldDescriptorProto[],
): ReadonlySet<string> {
  const kept = new Set(some);
  return new Set(all.filter((field) => !kept.has(field)).map(({ name }) => name));
}

function hasOneof(field: FieldDescriptorProto): boolean {
  return Object.hasOwn(field, "oneofIndex");
}

/** Returns an encoded VisibilityRule's labels. @throws RangeError if the rule is malformed */
function labelsOfRule({ data, wireType }: UnknownField): readonly string[] {
  if (wireType !== WireType.LengthDelimited) return [];
  const rule = new BinaryReader(new BinaryReader(data).bytes());
  const labels: string[] = [];
  while (rule.pos < rule.len) {
    const [number, type] = rule.tag();
    if (number === restrictionNumber && type === WireType.LengthDelimited) labels.push(...labelsOf(rule.string()));
    else rule.skip(type, number);
  }
  return labels;
}

/** The number of the extension `buf.validate.message`. Used because a descriptor set may lack the extension's file. */
const messageRulesNumber = 1159;

/** The numbers of `MessageRules.oneof` and `MessageOneofRule.fields`. */
const oneofNumber = 4;
const fieldsNumber = 1;

/**
 * Removes fields from `(buf.validate.message).oneof` rules, and rules that have no remaining fields.
 *
 * @throws Error if the option is malformed
 */
function withoutOneofFields(options: MessageOptions, names: ReadonlySet<string>): MessageOptions {
  if (options.$unknown?.some(({ no }) => no === messageRulesNumber) !== true) return options;
  return copyWith(options, {
    $unknown: options.$unknown.map((field) => {
      if (field.no !== messageRulesNumber || field.wireType !== WireType.LengthDelimited) return field;
      const rules = rulesWithout(new BinaryReader(field.data).bytes(), names);
      return { ...field, data: new BinaryWriter().bytes(rules).finish() };
    }),
  });
}

/** Returns an encoded `MessageRules` without some fields in its oneof rules. */
function rulesWithout(rules: Uint8Array, names: ReadonlySet<string>): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of fieldsOf(rules)) {
    if (field.number !== oneofNumber || field.content === undefined) {
      writer.raw(encodedIn(rules, field));
      continue;
    }
    const rule = oneofRuleWithout(field.content, names);
    if (rule !== undefined) writer.tag(oneofNumber, WireType.LengthDelimited).bytes(rule);
  }
  return writer.finish();
}

/** Returns an encoded `MessageOneofRule` without some fields, or `undefined` if no fields remain. */
function oneofRuleWithout(rule: Uint8Array, names: ReadonlySet<string>): Uint8Array | undefined {
  const isNamed = ({ number, content }: EncodedField): boolean =>
    number === fieldsNumber && names.has(new TextDecoder().decode(content));
  const kept = [...fieldsOf(rule)].filter((field) => !isNamed(field));
  if (!kept.some(({ number }) => number === fieldsNumber)) return undefined;
  const writer = new BinaryWriter();
  for (const field of kept) writer.raw(encodedIn(rule, field));
  return writer.finish();
}

function encodedIn(message: Uint8Array, { start, end }: EncodedField): Uint8Array {
  return message.subarray(start, end);
}

/** Returns whether a proto name path leads to a hidden field of a type. */
type IsHiddenPath = (typeName: string, path: string) => boolean;

/** Returns a method without the bindings in its HTTP rule whose path, body or response body names a hidden field. */
function withoutHiddenBindings(method: MethodDescriptorProto, isHidden: IsHiddenPath): MethodDescriptorProto {
  const { inputType, outputType, options } = method;
  const unknown = options?.$unknown ?? [];
  const annotations = unknown.filter(({ no }) => no === http.number);
  if (options === undefined || annotations.length === 0) return method;
  const rule = create(HttpRuleSchema);
  for (const { data } of annotations) mergeFromBinary(HttpRuleSchema, rule, new BinaryReader(data).bytes());
  const bindings = [rule, ...rule.additionalBindings];
  const visible = bindings.filter(
    (binding) =>
      !requestFieldsOf(binding).some((path) => isHidden(inputType, path)) &&
      !isHidden(outputType, binding.responseBody),
  );
  if (visible.length === bindings.length) return method;
  const [first, ...others] = visible;
  const $unknown = unknown.filter(({ no }) => no !== http.number);
  if (first !== undefined) {
    const kept = { ...first, selector: rule.selector, additionalBindings: others };
    const data = new BinaryWriter().bytes(toBinary(HttpRuleSchema, kept)).finish();
    $unknown.push({ no: http.number, wireType: WireType.LengthDelimited, data });
  }
  return copyWith(method, { options: copyWith<MethodOptions>(options, { $unknown }) });
}

/** Returns the paths of the request's fields that a binding's path template and body name. */
function requestFieldsOf({ pattern, body }: HttpRule): readonly string[] {
  const template = pattern.case === "custom" ? pattern.value.path : (pattern.value ?? "");
  return [body, ...[...template.matchAll(/\{([\w.]+)/g)].map(([, path = ""]) => path)];
}
