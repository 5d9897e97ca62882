import { create, mergeFromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { MethodDescriptorProto, MethodOptions } from "@bufbuild/protobuf/wkt";
import { http } from "../gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "../gen/google/api/http_pb.ts";
import { copyWith } from "./complete-files.ts";

/** Returns whether a proto name path leads to a hidden field of a type. */
type IsHiddenPath = (typeName: string, path: string) => boolean;

/** Returns a method without the bindings in its HTTP rule whose path, body or response body names a hidden field. */
export function withoutHiddenBindings(method: MethodDescriptorProto, isHidden: IsHiddenPath): MethodDescriptorProto {
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
