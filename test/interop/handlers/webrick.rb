# The handler with WEBrick.
require "webrick"

server = WEBrick::HTTPServer.new(
  BindAddress: "127.0.0.1", Port: ENV["PORT"].to_i, RequestTimeout: ENV["IDLE_MS"].to_f / 1000,
  Logger: WEBrick::Log.new(File::NULL), AccessLog: [],
)
server.mount_proc("/") do |request, response|
  if request.path == "/early"
    response.status = 413
    response.body = "too large"
    next
  end
  length = request.body.to_s.bytesize
  response.body = length.to_s
  case request.path
  when "/chunked"
    response.chunked = true
    response.body = "one two three"
  when "/close"
    response["connection"] = "close"
    response.body = "bye"
  when "/empty"
    response.status = 204
    response.body = nil
  when "/error"
    response.status = 500
    response.body = "broken"
  when "/redirect"
    response.status = 302
    response["location"] = "/echo"
    response.body = ""
  when "/large"
    response.body = "x" * 200_000
  end
end
trap("TERM") { server.shutdown }
server.start
