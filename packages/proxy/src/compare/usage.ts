/** Where a message is sent: in which direction, and by which request, such as `GET /v1/{id}`. */
export interface Usage {
  readonly direction: "request" | "response";
  readonly request: string;
}
