# The handler as a Rack application, for Puma.
run lambda { |env|
  text = ->(status, body, headers = {}) { [status, { "content-length" => body.bytesize.to_s, **headers }, [body]] }
  path = env["PATH_INFO"]
  next text.(413, "too large") if path == "/early"
  length = env["rack.input"].read.bytesize
  case path
  when "/chunked" then [200, {}, ["one ", "two ", "three"].each]
  when "/close" then text.(200, "bye", { "connection" => "close" })
  when "/empty" then [204, {}, []]
  when "/error" then text.(500, "broken")
  when "/redirect" then text.(302, "", { "location" => "/echo" })
  when "/large" then text.(200, "x" * 200_000)
  else text.(200, length.to_s)
  end
}
