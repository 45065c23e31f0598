"""The provider's REST API: its endpoints, and a client that keeps to a rate.

`endpoints` says what can be asked, `client` asks it at the pace of `pacing`, tries again, and tells what is
refused from what fails. An answer is read as it arrives (`json_stream`), and item by item (`answers`).
"""
