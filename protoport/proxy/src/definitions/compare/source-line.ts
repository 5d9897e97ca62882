import type { DescEnum, DescField, DescFile, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";

/** An element in the new definition whose line a report shows. For a removed element, its container's line is shown. */
export type SourceElement =
  | DescEnum
  | DescEnum["values"][number]
  | DescField
  | DescFile
  | DescMessage
  | DescMethod
  | DescService;

/** Returns an element's file and line. */
export function lineOf(element: SourceElement): { readonly file: string; readonly line: number | undefined } {
  const file = fileOfElement(element);
  const path = sourcePathOf(element);
  const location = file.proto.sourceCodeInfo?.location.find((each) => isSamePath(each.path, path));
  const [lineIndex] = location?.span ?? [];
  return { file: file.proto.name, line: lineIndex === undefined ? undefined : lineIndex + 1 };
}

// Compares the numbers, because joining paths first takes ten times as long in a definition with 1,500 messages.
function isSamePath(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((number, at) => number === other[at]);
}

function fileOfElement(element: SourceElement): DescFile {
  if (element.kind === "file") return element;
  return "file" in element ? element.file : element.parent.file;
}

// Returns a path as in SourceCodeInfo.Location (descriptor.proto): pairs of a field number and a list index.
function sourcePathOf(element: SourceElement): readonly number[] {
  switch (element.kind) {
    case "file":
      return [];
    case "service":
      return [6, element.file.proto.service.indexOf(element.proto)];
    case "rpc":
      return [...sourcePathOf(element.parent), 2, element.parent.proto.method.indexOf(element.proto)];
    case "message": {
      const { parent, file, proto } = element;
      return parent
        ? [...sourcePathOf(parent), 3, parent.proto.nestedType.indexOf(proto)]
        : [4, file.proto.messageType.indexOf(proto)];
    }
    case "enum": {
      const { parent, file, proto } = element;
      return parent
        ? [...sourcePathOf(parent), 4, parent.proto.enumType.indexOf(proto)]
        : [5, file.proto.enumType.indexOf(proto)];
    }
    case "field":
      return [...sourcePathOf(element.parent), 2, element.parent.proto.field.indexOf(element.proto)];
    case "enum_value":
      return [...sourcePathOf(element.parent), 2, element.parent.proto.value.indexOf(element.proto)];
  }
}
