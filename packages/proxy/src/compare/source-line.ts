import type { DescEnum, DescField, DescFile, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";

/** An element in the new definition to which reports point. Reports about a removed element point to its container. */
export type Place =
  | DescEnum
  | DescEnum["values"][number]
  | DescField
  | DescFile
  | DescMessage
  | DescMethod
  | DescService;

/** Returns an element's file and line. */
export function lineOf(place: Place): { readonly file: string; readonly line: number | undefined } {
  const file = fileOf(place);
  const path = pathOf(place);
  const location = file.proto.sourceCodeInfo?.location.find((each) => isSamePath(each.path, path));
  const [lineIndex] = location?.span ?? [];
  return { file: file.proto.name, line: lineIndex === undefined ? undefined : lineIndex + 1 };
}

// Comparing joined paths takes ten times as long in a definition with 1,500 messages.
function isSamePath(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((number, at) => number === other[at]);
}

function fileOf(place: Place): DescFile {
  if (place.kind === "file") return place;
  return "file" in place ? place.file : place.parent.file;
}

// Returns a path as in SourceCodeInfo.Location (descriptor.proto): pairs of a field number and a list index.
function pathOf(place: Place): readonly number[] {
  switch (place.kind) {
    case "file":
      return [];
    case "service":
      return [6, place.file.proto.service.indexOf(place.proto)];
    case "rpc":
      return [...pathOf(place.parent), 2, place.parent.proto.method.indexOf(place.proto)];
    case "message": {
      const { parent, file, proto } = place;
      return parent
        ? [...pathOf(parent), 3, parent.proto.nestedType.indexOf(proto)]
        : [4, file.proto.messageType.indexOf(proto)];
    }
    case "enum": {
      const { parent, file, proto } = place;
      return parent
        ? [...pathOf(parent), 4, parent.proto.enumType.indexOf(proto)]
        : [5, file.proto.enumType.indexOf(proto)];
    }
    case "field":
      return [...pathOf(place.parent), 2, place.parent.proto.field.indexOf(place.proto)];
    case "enum_value":
      return [...pathOf(place.parent), 2, place.parent.proto.value.indexOf(place.proto)];
  }
}
