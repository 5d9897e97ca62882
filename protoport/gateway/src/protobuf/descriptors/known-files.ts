import type { DescFile } from "@bufbuild/protobuf";
import {
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
  type FileDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import { file_google_api_annotations } from "../gen/google/api/annotations_pb.ts";
import { file_google_api_field_behavior } from "../gen/google/api/field_behavior_pb.ts";
import { file_google_api_field_info } from "../gen/google/api/field_info_pb.ts";
import { file_google_api_http } from "../gen/google/api/http_pb.ts";
import { file_google_api_httpbody } from "../gen/google/api/httpbody_pb.ts";

const known: readonly DescFile[] = [
  file_google_api_annotations,
  file_google_api_field_behavior,
  file_google_api_field_info,
  file_google_api_http,
  file_google_api_httpbody,
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
];

/** Finds a well-known file by name. A server's reflection may lack a well-known file that other files import. */
export function knownFile(name: string): FileDescriptorProto | undefined {
  return known.find(({ proto }) => proto.name === name)?.proto;
}
