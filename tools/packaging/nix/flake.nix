{
  description = "Simulator for federated continual learning";
  # Run `nix build path:.?dir=tools/packaging/nix` in the root of the sources.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      system = "x86_64-linux";
      pkgs = nixpkgs.legacyPackages.${system};
      torch = pkgs.python3Packages.torch-bin;
      caf = pkgs.fetchurl {
        url = "https://github.com/actor-framework/actor-framework/archive/refs/tags/0.18.7.tar.gz";
        sha256 = "d5c3abe8fd67a729aab1baeece10367637d903ba335f4c79378bcadfbcd34552";
      };
    in {
      packages.${system}.default = pkgs.stdenv.mkDerivation {
        pname = "mneme-fcl";
        version = "0.1.0";
        src = ../../..;
        nativeBuildInputs = with pkgs; [ cmake ninja help2man ];
        buildInputs = with pkgs; [
          torch catch2_3 eigen nlohmann_json zlib xz libjpeg libpng icu openssl sqlite mimalloc tomlplusplus cli11 tl-expected
          libmicrohttpd xxHash
        ];
        dontConfigure = true;
        buildPhase = ''
          mkdir caf
          tar -xf ${caf} -C caf --strip-components 1
          bash tools/packaging/from_source.sh caf ${torch}/${pkgs.python3.sitePackages} $out
        '';
        dontInstall = true;
      };
    };
}
