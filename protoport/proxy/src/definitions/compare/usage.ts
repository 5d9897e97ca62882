/** Where a message is used: in requests or responses, and in which request, such as `GET /v1/{id}`. */
export interface Usage {
  readonly direction: "request" | "response";
  readonly request: string;
}
